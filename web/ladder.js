/*
 * The ladder of one window as a table with bars. All bars share one scale, in multiples of what
 * the filesystem was asked, so that the factor of each layer can be read off, and the expected
 * amplification is one dashed line through all rungs beneath the filesystem.
 */
import { element } from './dom.js';
import { NONE, count, multiple, rate, share, size } from './format.js';
import { LAYERS, part_name } from './layers.js';

const PARTS_MAX = 12;
const PART_CLASS = { data: 1, wal: 2, sst: 3, log: 4, log_compaction: 4, padding: 5, deferred: 1, cache_hit: 3, cache_miss: 1, bluefs: 2 };

const value_of = (rung, measure) => rung?.[measure === 'ops' ? 'ops_per_second' : 'bytes_per_second'] ?? null;
const total_of = (rung, measure) => rung?.[measure === 'ops' ? 'ops' : 'bytes'] ?? null;
const percent = (value, scale) => `${Math.min(100, Math.max(0, (value / scale.max) * 100)).toFixed(3)}%`;

/* Ticks at whole multiples of the filesystem rung, few enough to read. */
function scale_of(side, measure) {
        /* Idle: multiples of almost nothing would only mislead. */
        const base = side.state === 'idle' ? null : total_of(side.rungs.find(r => r.layer === 'filesystem'), measure);
        const totals = side.rungs.map(rung => total_of(rung, measure) ?? 0);
        const expected = measure === 'bytes' && base ? side.expected : null;
        const max = Math.max(...totals, (expected ?? 0) * (base ?? 0)) * 1.04;
        const ticks = [];
        if (base && max / base < 500) {
                const step = [1, 2, 5, 10, 20, 50, 100].find(s => max / base / s <= 8) ?? 100;
                for (let tick = step; tick * base <= max; tick += step)
                        ticks.push(tick);
        }
        return { base, max: max || 1, ticks, expected, idle: side.state === 'idle' };
}

function marks(scale, with_expected) {
        const lines = scale.ticks.map(tick => element('i', { class: 'tick', style: { left: percent(tick * scale.base, scale) } }));
        if (with_expected && scale.expected)
                lines.push(element('i', { class: 'tick expected', style: { left: percent(scale.expected * scale.base, scale) } }));
        return lines;
}

function segment(from, value, scale, style, title) {
        return element('i', { class: `segment ${style}`, title, style: { left: percent(from, scale), width: percent(value, scale) } });
}

function part_style(layer, part, i) {
        if (layer === 'objectstore')
                return `is-${PART_CLASS[part.name] ?? 5}${part.included_in ? ' inside' : ''}`;
        return `of-${layer}${layer === 'osd' && i ? `-${i === 1 ? 2 : 3}` : ''}`;
}

/*
 * Where each part begins: they lie end to end, but one included in another begins with that, and
 * one that the rung does not count stands beside it, from the left.
 */
function placed(rung, measure) {
        const parts = (rung.parts ?? []).filter(part => total_of(part, measure) !== null);
        const begin = new Map();
        let at = 0;
        for (const part of parts.filter(p => p.counted !== false && !p.included_in)) {
                begin.set(part.name, at);
                at += total_of(part, measure);
        }
        return parts.map((part, i) => ({ part, i, value: total_of(part, measure), from: begin.get(part.included_in ?? part.name) ?? 0 }));
}

function cell(text, label, style = '') {
        return element('td', { class: `${style}${text === NONE ? ' empty-cell' : ''}`.trim() || null, role: 'cell', 'data-label': label }, text);
}

function rung_row(rung, above, scale, context) {
        const { measure, open } = context;
        const layer = LAYERS.find(l => l.layer === rung.layer) ?? { layer: 'storage', help: '' };
        const value = total_of(rung, measure);
        const parts = placed(rung, measure);
        const stacked = parts.length && rung.layer !== 'filesystem' && parts.length <= 24;
        const whole = segment(0, value ?? 0, scale, `of-${layer.layer} whole`, layer.layer);
        const bars = stacked ? [whole, ...parts.filter(({ part }) => part.counted !== false || part.included_in).map(({ part, i, value: width, from }) => segment(from, width, scale, part_style(rung.layer, part, i), part_name(part.name)))] : [whole];
        const toggle = rung.parts?.length ? element('button', {
                type: 'button', class: 'open', 'data-open': rung.layer, 'aria-expanded': String(open.has(rung.layer)),
                'aria-label': `Parts of ${rung.layer}`,
        }) : element('span', { class: 'noopen' });
        const step = scale.idle ? null : above && value !== null && total_of(above, measure) ? value / total_of(above, measure) : null;
        const below = rung.layer !== 'filesystem';
        const by_base = scale.base && value !== null ? value / scale.base : null;
        return element('tr', { class: 'rung', role: 'row', 'data-layer': rung.layer },
                element('th', { scope: 'row', role: 'rowheader', title: rung.note ?? layer.help }, toggle,
                        element('span', { class: `swatch of-${layer.layer}` }), rung.layer),
                element('td', { class: 'bar', role: 'cell' }, element('div', { class: 'track' }, marks(scale, below), value === null ? null : bars)),
                cell(rate(rung.bytes_per_second, 'bytes'), 'throughput', measure === 'bytes' ? 'main' : ''),
                cell(rate(rung.ops_per_second, 'ops'), 'IOPS', measure === 'ops' ? 'main' : ''),
                cell(size(rung.mean_size), 'request'),
                cell(below ? multiple(step) : NONE, 'of the layer above'),
                cell(multiple(scale.idle ? null : measure === 'bytes' ? rung.amplification : by_base), measure === 'bytes' ? 'amplification' : 'of filesystem', 'main'),
                cell(below ? multiple(scale.expected) : NONE, 'expected'));
}

const per_second = (total, seconds) => typeof total === 'number' ? total / seconds : null;

function part_rows(rung, scale, { measure, open, seconds }) {
        if (!open.has(rung.layer))
                return [];
        const parts = placed(rung, measure);
        const rows = parts.slice(0, PARTS_MAX).map(({ part, i, value, from }) => {
                const style = part_style(rung.layer, part, i);
                return element('tr', { class: 'part', role: 'row', 'data-part-of': rung.layer },
                        element('th', { scope: 'row', role: 'rowheader', title: part.help ?? null },
                                element('span', { class: `swatch ${style}` }), part_name(part.name),
                                part.included_in ? ` (in ${part_name(part.included_in).replace('RocksDB ', '')})` : part.counted === false ? ' (beside)' : ''),
                        element('td', { class: 'bar', role: 'cell' }, element('div', { class: 'track' }, marks(scale, rung.layer !== 'filesystem'),
                                segment(from, value, scale, style))),
                        cell(rate(per_second(part.bytes, seconds), 'bytes'), 'throughput'),
                        cell(rate(per_second(part.ops, seconds), 'ops'), 'IOPS'),
                        cell(size(part.ops ? part.bytes / part.ops : null), 'request'),
                        cell(NONE, 'of the layer above'), cell(multiple(scale.idle ? null : part.amplification), 'amplification'), cell(NONE, 'expected'));
        });
        if (parts.length > PARTS_MAX)
                rows.push(element('tr', { class: 'part', role: 'row' }, element('th', { scope: 'row', role: 'rowheader', colspan: 8 },
                        `and ${count(parts.length - PARTS_MAX)} more`)));
        return rows;
}

function unattributed_row(side, scale, seconds) {
        const part = side.unattributed;
        if (typeof part?.bytes !== 'number')
                return null;
        const storage = total_of(side.rungs.find(r => r.layer === 'storage'), 'bytes') ?? 0;
        const width = Math.abs(part.bytes);
        return element('tr', { class: 'sum', role: 'row' },
                element('th', { scope: 'row', role: 'rowheader', title: 'Device bytes that no counter above explains' },
                        element('span', { class: 'noopen' }), element('span', { class: 'swatch of-unattributed' }), 'unattributed'),
                element('td', { class: 'bar', role: 'cell' }, element('div', { class: 'track' }, marks(scale, false),
                        segment(part.bytes < 0 ? storage : storage - width, width, scale, 'of-unattributed'))),
                cell(rate(part.bytes / seconds, 'bytes'), 'throughput'), cell(NONE, 'IOPS'), cell(NONE, 'request'),
                element('td', { colspan: 2, role: 'cell' }, typeof part.share === 'number' ? `${share(part.share)} of storage` : ''),
                cell(NONE, 'expected'));
}

function head(scale, measure) {
        const labels = [element('span', {}, '0')];
        for (const tick of scale.ticks)
                if (!scale.expected || Math.abs(tick - scale.expected) * scale.base > scale.max * .07)
                        labels.push(element('span', { style: { left: percent(tick * scale.base, scale) } }, `${tick}×`));
        if (scale.expected)
                labels.push(element('span', { class: 'expected', style: { left: percent(scale.expected * scale.base, scale) } }, multiple(scale.expected)));
        const caption = (text, title) => element('th', { scope: 'col', role: 'columnheader', title }, text);
        return element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' },
                caption('layer'),
                element('th', { scope: 'col', role: 'columnheader', class: 'bar' }, element('span', { class: 'unseen' }, 'bar, in multiples of filesystem'),
                        element('span', { class: 'scale' }, labels)),
                caption('throughput'), caption('IOPS'), caption('mean request'),
                caption('of layer above', 'This layer divided by the one above it'),
                caption(measure === 'bytes' ? 'amplification' : 'of filesystem', 'This layer divided by filesystem'),
                caption('expected', 'What replication or erasure coding alone explains')));
}

const ITEMS = { copies: 'copies', received: 'received', data: 'data', erasure: 'partial stripes', metadata: 'metadata', compression: 'compression', unattributed: 'unattributed' };

/* 6.39x = 3.00x copies + 3.00x deferred writes + 0.39x metadata; each with its sentence. */
function explained_row(side) {
        const items = side.explained ?? [];
        if (!items.length || typeof side.amplification !== 'number')
                return null;
        const words = items.flatMap((item, i) => {
                const configured = typeof item.configured === 'number' && i ? ` By configuration: ${multiple(item.configured)}.` : '';
                return [i === 0 ? ' = ' : item.amplification < 0 ? ' − ' : ' + ',
                        element('span', { title: `${item.sentence}${configured}` }, `${multiple(Math.abs(item.amplification))} ${ITEMS[item.name] ?? part_name(item.name)}`)];
        });
        return element('tr', { class: 'part note explained', role: 'row' },
                element('td', { colspan: 8, role: 'cell' }, element('b', {}, multiple(side.amplification)), words));
}

const note_row = note => element('tr', { class: 'part note', role: 'row' }, element('td', { colspan: 8, role: 'cell' }, String(note)));

/* @context: { measure, open: Set of layers whose parts are shown, seconds }. */
export function ladder_table(side, context) {
        const scale = scale_of(side, context.measure);
        const rows = [];
        let above = null;
        for (const { layer } of LAYERS) {
                const rung = side.rungs.find(r => r.layer === layer);
                if (!rung)
                        continue;
                rows.push(rung_row(rung, above, scale, context), rung.note ? note_row(rung.note) : null, ...part_rows(rung, scale, context));
                if (value_of(rung, context.measure) !== null)
                        above = rung;
        }
        return element('table', { class: 'ladder', role: 'table' }, head(scale, context.measure),
                element('tbody', { role: 'rowgroup' }, rows, context.measure === 'bytes' ? [unattributed_row(side, scale, context.seconds), explained_row(side)] : null));
}
