/* The tables of devices, pools and agents: columns as data, sorted by their captions. */
import { element } from './dom.js';
import { NONE, bytes, count, duration, fraction, latency, multiple, operations, plain, size, throughput } from './format.js';

const text = (row, key) => String(row[key] ?? '');

function gauge(value) {
        if (typeof value !== 'number')
                return NONE;
        const width = `${Math.min(100, value * 100).toFixed(1)}%`;
        return [fraction(value), element('span', { class: 'gauge', 'aria-hidden': 'true' }, element('i', { style: { width } }))];
}

function backs(device) {
        const osds = device.osds ?? [];
        if (!osds.length)
                return NONE;
        const names = osds.slice(0, 4).map(id => `osd.${id}`).join(' ') + (osds.length > 4 ? ` +${osds.length - 4}` : '');
        return `${names}${device.role && device.role !== 'block' ? ` ${device.role}` : ''}${osds.length > 1 ? ' (shared)' : ''}`;
}

/* key: what is sorted by; show: text or nodes; start: the direction a first click sorts in. */
const DEVICES = [
        { key: 'name', caption: 'device', style: 'name text', show: d => d.alias ? `${d.name} (${d.alias})` : text(d, 'name') },
        { key: 'hostname', caption: 'host', style: 'text sub' },
        { key: 'backs', caption: 'backs', style: 'text', value: d => d.osds?.[0] ?? Infinity, show: backs },
        { key: 'model', caption: 'model', style: 'text sub minor', show: d => d.model || d.kind || NONE, title: d => d.identity },
        { key: 'size', caption: 'size', style: 'minor', show: d => bytes(d.size) },
        { key: 'utilisation', caption: 'utilisation', help: 'Part of the time with at least one request in flight. On devices that serve many at once 100 % is not yet saturated: look at await and queue.', start: -1, show: d => gauge(d.utilisation) },
        { key: 'await', caption: 'await', help: 'Mean time of a request, queueing included', start: -1, show: d => latency(d.await) },
        { key: 'queue', caption: 'queue', help: 'Mean number of requests in flight', start: -1, show: d => plain(d.queue) },
        { key: 'bytes', caption: 'throughput', start: -1, show: d => throughput(d.bytes) },
        { key: 'ops', caption: 'IOPS', start: -1, show: d => operations(d.ops) },
        { key: 'request', caption: 'mean request', style: 'minor', start: -1, show: d => size(d.request) },
];

const POOLS = [
        { key: 'name', caption: 'pool', style: 'name text' },
        { key: 'type', caption: 'protection', style: 'text', show: p => p.type === 'erasure' ? `erasure ${p.k}+${p.m}` : p.size ? `${p.size} copies` : text(p, 'type') || NONE },
        { key: 'expected', caption: 'expected', style: 'minor', help: 'Amplification of a write that this protection alone explains', start: -1, show: p => multiple(p.expected) },
        { key: 'bytes', caption: 'throughput', start: -1, show: p => throughput(p.bytes) },
        { key: 'ops', caption: 'IOPS', start: -1, show: p => operations(p.ops) },
        { key: 'request', caption: 'mean request', style: 'minor', start: -1, show: p => size(p.request) },
];

const late_after = agent => 30 + 3 * Math.max(0, ...(agent.sources ?? []).map(source => source.interval ?? 0));
const OFFSET_MAX = 1; /* a clock this many seconds off mixes up windows */

function freshness(agent) {
        if (typeof agent.age !== 'number')
                return element('span', { class: 'bad' }, 'never');
        return agent.age > late_after(agent) ? element('span', { class: 'bad' }, `late, ${duration(agent.age)}`) :
                element('span', {}, `${duration(agent.age)} ago`);
}

function offset(agent) {
        if (typeof agent.clock_offset !== 'number')
                return NONE;
        const shown = `${agent.clock_offset < 0 ? '−' : '+'}${latency(Math.abs(agent.clock_offset))}`;
        return Math.abs(agent.clock_offset) > OFFSET_MAX ? element('span', { class: 'bad' }, `${shown}: set its clock`) : shown;
}

const AGENTS = [
        { key: 'hostname', caption: 'agent', style: 'name text', title: a => a.host_id },
        { key: 'age', caption: 'last upload', start: -1, show: freshness },
        { key: 'clock_offset', caption: 'clock offset', help: "The agent's clock minus the collector's", show: offset },
        { key: 'backlog_rows', caption: 'backlog', help: 'Rows that still wait in its spool', start: -1, show: a => typeof a.backlog_rows === 'number' ? `${count(a.backlog_rows)} rows` : NONE },
        { key: 'dropped_rows', caption: 'dropped', style: 'minor', help: 'Rows given up because the spool was full', start: -1, show: a => a.dropped_rows ? element('span', { class: 'bad' }, `${count(a.dropped_rows)} rows`) : '0 rows' },
        { key: 'sources', caption: 'sources', style: 'text sub minor', value: a => (a.sources ?? []).length, show: a => (a.sources ?? []).map(s => s.source).join(', ') || NONE, title: a => (a.sources ?? []).map(s => `${s.source} every ${duration(s.interval)}`).join(', ') },
];

export const TABLES = { devices: DEVICES, pools: POOLS, agents: AGENTS };

function sorted(rows, columns, sort) {
        const column = columns.find(c => c.key === sort.key) ?? columns[0];
        const value = column.value ?? (row => row[column.key]);
        const missing = v => v === null || v === undefined;
        return rows.slice().sort((a, b) => {
                const [x, y] = [value(a), value(b)];
                if (missing(x) || missing(y))
                        return missing(x) - missing(y);
                return sort.order * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true }));
        });
}

const head_style = column => ['text', 'minor'].filter(style => column.style?.includes(style)).join(' ') || null;

/* @sort: { key, order: 1 or -1 }. */
export function table(name, rows, sort) {
        const columns = TABLES[name];
        const heads = columns.map(column => element('th', {
                scope: 'col', class: head_style(column), title: column.help ?? null,
                'aria-sort': column.key === sort.key ? (sort.order > 0 ? 'ascending' : 'descending') : null,
        }, element('button', { type: 'button', 'data-sort': column.key, 'data-table': name, 'data-start': column.start ?? 1 }, column.caption)));
        const body = sorted(rows, columns, sort).map(row => element('tr', {}, columns.map(column => {
                const shown = column.show ? column.show(row) : text(row, column.key) || NONE;
                const full = typeof shown === 'string' && column.style?.includes('text') ? shown : null;
                return element('td', { class: column.style ?? null, title: column.title?.(row) ?? full }, shown);
        })));
        return element('table', { class: 'list' }, element('thead', {}, element('tr', {}, heads)), element('tbody', {}, body));
}

/*
 * Puts the means of /series (one window, by device or pool) beside the rows of a list.
 * @matches says whether a series belongs to a row.
 */
export function with_means(rows, answer, direction, key_of) {
        const found = new Map();
        for (const series of answer?.series ?? []) {
                const key = `${series.host ?? ''}/${series.key}`;
                found.set(key, { ...found.get(key), [series.metric]: series.value?.at(-1) ?? null });
        }
        return rows.map(row => {
                const mean = found.get(key_of(row)) ?? {};
                const [bytes_now, ops_now] = [mean[`${direction}_bytes`] ?? null, mean[`${direction}_ops`] ?? null];
                return {
                        ...row, utilisation: mean.utilisation ?? null, queue: mean.queue ?? null, await: mean[`${direction}_await`] ?? null,
                        bytes: bytes_now, ops: ops_now, request: bytes_now !== null && ops_now ? bytes_now / ops_now : null,
                };
        });
}
