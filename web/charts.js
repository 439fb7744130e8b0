/*
 * The two charts on one time axis: the layers' rates, and beneath them the ratio curve with what
 * is expected. Their plot areas have the same left and right edge and one cursor. A window's
 * state is a tint behind the curves and a solid strip at the foot of the chart.
 */
import uPlot from './uPlot.esm.js';
import { clock, day, multiple, rate } from './format.js';
import { LAYERS, colour } from './layers.js';

const AXIS_LEFT = 84;
const PAD_RIGHT = 22;
const STRIP = 5;
const CURSOR_KEY = 'strata';

/*
 * Lower layers are drawn first and thicker: where objectstore and storage agree, as they should,
 * both lines can still be seen.
 */
export const DRAWN = LAYERS.map(({ layer }) => layer).reverse();
const WIDTHS = [5, 1.5, 1.7, 1.7];
const LOWEST_ALPHA = .5;

const two = number => String(number).padStart(2, '0');

/* 24-hour labels whatever the browser's language; the day where it changes. */
function time_labels(plot, splits, axis, space, increment) {
        let shown = '';
        return splits.map(at => {
                const date = new Date(at * 1000);
                const hour = increment >= 86400 ? '' : increment >= 60 ? `${two(date.getHours())}:${two(date.getMinutes())}` : clock(at);
                const new_day = day(at) !== shown && (shown !== '' || increment >= 3600 || day(at) !== day(plot.scales.x.max));
                shown = day(at);
                return new_day ? `${hour}${hour ? '\n' : ''}${shown.slice(5)}` : hour;
        });
}

/* Runs of equal state: [state, first index, index past the last]. */
export function runs(states) {
        const found = [];
        states.forEach((state, i) => {
                const last = found.at(-1);
                if (last && last[0] === state)
                        last[2] = i + 1;
                else
                        found.push([state, i, i + 1]);
        });
        return found;
}

function hatch(context, x, y, width, height) {
        context.save();
        context.beginPath();
        context.rect(x, y, width, height);
        context.clip();
        context.beginPath();
        const gap = 7 * devicePixelRatio;
        for (let at = x - height; at < x + width; at += gap) {
                context.moveTo(at, y + height);
                context.lineTo(at + height, y);
        }
        context.lineWidth = devicePixelRatio;
        context.stroke();
        context.restore();
}

function draw_states(plot, { states, times, step }, solid) {
        const { left, top, width, height } = plot.bbox;
        const context = plot.ctx;
        const strip = STRIP * devicePixelRatio;
        context.save();
        for (const [state, first, past] of runs(states)) {
                if (state === 'ok' || state === 'pending')
                        continue;
                const x = Math.max(left, plot.valToPos(times[first], 'x', true));
                const right = Math.min(left + width, plot.valToPos(times[past - 1] + step, 'x', true));
                if (right <= x)
                        continue;
                context.fillStyle = context.strokeStyle = colour(`state-${state}`) || '#888';
                if (solid) {
                        context.fillRect(x, top + height - strip, right - x, strip);
                        continue;
                }
                context.globalAlpha = state === 'gap' ? .45 : state === 'short' ? .08 : .16;
                if (state === 'gap')
                        hatch(context, x, top, right - x, height);
                else
                        context.fillRect(x, top, right - x, height);
                context.globalAlpha = 1;
        }
        context.restore();
}

/* A sample between two gaps has no line to either side: it gets a point. */
function lonely(plot, series) {
        const values = plot.data[series];
        const found = [];
        for (let i = 0; i < values.length; i++)
                if (values[i] !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null)
                        found.push(i);
        return found.length ? found : null;
}

/* "50.0 MB/s" is "50 MB/s" on an axis. */
const short = text => text.replace(/(\.\d*?)0+(?!\d)/, '$1').replace(/\.(?!\d)/, '');

const line = (name, stroke, width = 1.6, extra = {}) => ({
        label: name, stroke, width, spanGaps: false,
        points: { show: false, size: 4, stroke, fill: stroke, filter: lonely }, ...extra,
});

function options(chart, height, series, y_range, y_label, extra = {}) {
        const quiet = colour('ink-quiet');
        /* Whole pixels: uPlot reads the size back from this text. */
        const font = `11px ${getComputedStyle(document.body).fontFamily}`;
        const two_lines = chart.data.to - chart.data.from > 43200;
        const axis = { stroke: quiet, font, ticks: { show: false }, grid: { stroke: colour('rule'), width: 1 } };
        return {
                width: chart.host.clientWidth || 600, height,
                padding: [8, PAD_RIGHT, 0, 0],
                legend: { show: false },
                cursor: {
                        sync: { key: CURSOR_KEY, scales: ['x', null] }, y: false,
                        drag: { x: true, y: false, setScale: false },
                        points: { size: 6 },
                        bind: { dblclick: () => null },
                },
                scales: {
                        x: { time: true, range: () => [chart.data.from, chart.data.to] },
                        y: { range: y_range },
                },
                axes: [
                        { ...axis, values: time_labels, space: 70, size: two_lines ? 36 : 22, gap: 4 },
                        { ...axis, values: (plot, splits) => splits.map(value => short(y_label(value))), size: AXIS_LEFT, gap: 6, space: 34 },
                ],
                series: [{}, ...series],
                hooks: {
                        drawClear: [plot => draw_states(plot, chart.data, false)],
                        draw: [plot => draw_states(plot, chart.data, true)],
                        setCursor: [plot => chart.on_cursor(plot.cursor.idx ?? null)],
                        setSelect: [plot => select(plot, chart)],
                },
                ...extra,
        };
}

function select(plot, chart) {
        const { left, width } = plot.select;
        if (width < 6)
                return;
        const [from, to] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        chart.on_select(from, to);
}

const from_zero = (plot, min, max) => [0, max > 0 ? max * 1.06 : 1];

/*
 * The highest value that the axis of the ratio shows: the curve's ordinary heights and what is
 * expected. A few windows in which deferred bytes land after the load may be ten times as high.
 */
export function ratio_top(values, expected) {
        const known = values.filter(value => value !== null).sort((a, b) => a - b);
        if (!known.length)
                return 1;
        const ordinary = known[Math.floor((known.length - 1) * .97)];
        return Math.max(ordinary * 1.2, Math.max(0, ...expected.filter(value => value !== null)) * 1.3);
}

export class Chart {
        /* @kind: 'layers' or 'ratio'; @on_cursor(index or null); @on_select(from, to). */
        constructor(host, kind, { on_cursor, on_select }) {
                Object.assign(this, { host, kind, on_cursor, on_select, plot: null, made_for: '' });
                new ResizeObserver(() => this.plot?.setSize({ width: host.clientWidth, height: this.plot.height })).observe(host);
                host.addEventListener('keydown', event => this.key(event));
        }

        /* @data: { from, to, step, times, states, columns, measure, curve }; columns as in make_*. */
        show(data) {
                this.data = data;
                const centre = data.times.map(t => t + data.step / 2);
                const kind = `${data.measure} ${data.curve} ${data.to - data.from > 43200} ${matchMedia('(prefers-color-scheme: dark)').matches}`;
                if (this.plot && this.made_for === kind) {
                        this.plot.setData([centre, ...data.columns]);
                        return;
                }
                this.clear();
                this.made_for = kind;
                const made = this.kind === 'layers' ? this.layers_options() : this.ratio_options();
                this.plot = new uPlot(made, [centre, ...data.columns], this.host);
        }

        layers_options() {
                const { measure } = this.data;
                return options(this, 230, DRAWN.map((layer, i) => line(layer, colour(layer), WIDTHS[i], i ? {} : { alpha: LOWEST_ALPHA })),
                        from_zero, value => rate(value, measure));
        }

        ratio_options() {
                const range = () => [0, ratio_top(this.data.columns[0], this.data.columns[1])];
                const label = this.data.curve === 'ratio' ? value => value.toFixed(2) : multiple;
                return options(this, 180, [
                        line('measured', colour('measured'), 1.6),
                        line('expected', colour('expected'), 1.4, { dash: [6, 4], points: { show: false } }),
                ], range, label, this.data.curve === 'amplification' ? { bands: [{ series: [1, 2], fill: colour('excess'), dir: -1 }] } : {});
        }

        toggle(layer, shown) {
                const index = DRAWN.indexOf(layer) + 1;
                this.plot?.setSeries(index, { show: shown });
        }

        clear() {
                this.plot?.destroy();
                this.plot = null;
                this.host.replaceChildren();
        }

        /* Arrow keys move the cursor of both charts from window to window. */
        key(event) {
                const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
                if (!this.plot || (!move && event.key !== 'Home' && event.key !== 'End'))
                        return;
                event.preventDefault();
                const last = this.data.times.length - 1;
                const at = event.key === 'Home' ? 0 : event.key === 'End' ? last :
                        Math.min(last, Math.max(0, (this.plot.cursor.idx ?? last + 1) + move));
                const left = this.plot.valToPos(this.plot.data[0][at], 'x');
                this.plot.setCursor({ left, top: this.plot.height / 3 }, true, true);
        }
}
