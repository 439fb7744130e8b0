/*
 * The curves that a finding names, drawn below it. They are asked for by the page itself: a link to
 * the API would open without the token, which this tab alone has. Pure but for `load`.
 */
import * as api from './api.js';
import { drawing, element } from './dom.js';
import { clock, plain } from './format.js';

const WIDTH = 560;
const HEIGHT = 90;
const LINES = 12; /* of one metric */

const parameters = path => Object.fromEntries(new URLSearchParams(path.split('?')[1] ?? ''));

/* "queue, write_await" of "/series?layer=storage&metric=queue,write_await" */
export function curve_name(path) {
        const { metric, measure } = parameters(path);
        return (metric ?? measure ?? 'curve').replaceAll(',', ', ');
}

/* The answer to @path over the range of the page. */
export const load = (path, cluster, { from, to, step }) =>
        api.get(path.slice(1).split('?')[0], { ...parameters(path), cluster, from, to, step: `${step}s` });

/* One entry a metric: { name, unit, lines: [{ key, t, values }] }. */
export function plots(answer) {
        const found = new Map();
        for (const one of answer?.series ?? []) {
                const name = one.metric ?? 'amplification';
                if (!found.has(name))
                        found.set(name, { name, unit: one.unit ?? '', lines: [] });
                found.get(name).lines.push({ key: one.host ? `${one.host}/${one.key}` : one.key, t: one.t, values: one.value ?? one.amplification });
        }
        return [...found.values()];
}

const known = values => values.filter(value => value !== null);

/* A gap breaks the line. */
function path_of({ t, values }, from, to, top) {
        let drawn = false;
        return values.map((value, i) => {
                if (value === null) {
                        drawn = false;
                        return '';
                }
                const x = (t[i] - from) / Math.max(to - from, 1) * WIDTH;
                const point = `${drawn ? 'L' : 'M'}${x.toFixed(1)} ${(HEIGHT - value / top * (HEIGHT - 4)).toFixed(1)}${drawn ? '' : 'h.5'}`;
                drawn = true;
                return point;
        }).join('');
}

function plot({ name, unit, lines }, from, to) {
        const shown = lines.slice(0, LINES);
        const all = shown.flatMap(line => known(line.values));
        if (all.length === 0)
                return element('p', { class: 'quiet' }, `${name}: no samples in this range.`);
        const top = Math.max(...all) || 1;
        const more = lines.length > LINES ? ` (the first ${LINES} of ${lines.length})` : '';
        return element('figure', { class: 'curve' },
                element('figcaption', {}, element('b', {}, name), ` ${unit}, ${plain(Math.min(...all))} to ${plain(Math.max(...all))}: ${shown.map(line => line.key).join(', ')}${more}`),
                drawing('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${name}, up to ${plain(Math.max(...all))} ${unit}` },
                        shown.map(line => drawing('path', { d: path_of(line, from, to, top) }))),
                element('p', { class: 'quiet ends' }, element('span', {}, clock(from)), element('span', {}, clock(to))));
}

/* @asked: { path, answer, problem }, of which answer and problem are still missing at first. */
export function figures({ answer, problem }) {
        if (problem)
                return element('p', { class: 'warn' }, `The curve cannot be shown: ${problem}`);
        if (!answer)
                return element('p', { class: 'quiet' }, 'Asking for the curve …');
        const found = plots(answer);
        return found.length ? found.map(one => plot(one, answer.from, answer.to)) : element('p', { class: 'quiet' }, 'The collector has no such curve in this range.');
}
