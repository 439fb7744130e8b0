/*
 * What the reader chose: it lives in the address after '#', so that a link shows another reader
 * the same view. Values that the page does not know fall back to the default.
 */
const CHOICES = {
        range: ['15m', '1h', '6h', '24h', '7d', 'custom'],
        direction: ['write', 'read'],
        measure: ['bytes', 'ops'],
        curve: ['amplification', 'ratio'],
        window: ['now', 'range'],
};
const DEFAULT = {
        cluster: '', range: '15m', from: null, to: null, direction: 'write', measure: 'bytes',
        curve: 'amplification', window: 'now', live: true, all: false,
};
const SECONDS = { '15m': 900, '1h': 3600, '6h': 21600, '24h': 86400, '7d': 604800 };

const seconds_of = text => {
        const ms = /^\d+(\.\d+)?$/.test(text ?? '') ? Number(text) * 1000 : Date.parse(text ?? '');
        return Number.isFinite(ms) ? ms / 1000 : null;
};

export function parse(hash) {
        const given = new URLSearchParams(hash.replace(/^#/, ''));
        const view = { ...DEFAULT, cluster: given.get('cluster') ?? '' };
        for (const [name, allowed] of Object.entries(CHOICES))
                if (allowed.includes(given.get(name)))
                        view[name] = given.get(name);
        view.from = seconds_of(given.get('from'));
        view.to = seconds_of(given.get('to'));
        if (view.range === 'custom' && (view.from === null || view.to === null))
                view.range = DEFAULT.range;
        if (view.range === 'custom' && !given.has('window'))
                view.window = 'range';
        view.live = given.get('live') !== '0' && view.range !== 'custom';
        view.all = given.get('all') === '1';
        return view;
}

export function serialize(view) {
        const out = new URLSearchParams();
        if (view.cluster)
                out.set('cluster', view.cluster);
        out.set('range', view.range);
        if (view.range === 'custom')
                for (const edge of ['from', 'to'])
                        out.set(edge, new Date(view[edge] * 1000).toISOString().replace(/\.000Z$/, 'Z'));
        out.set('direction', view.direction);
        for (const name of ['measure', 'curve', 'window'])
                if (view[name] !== DEFAULT[name] || (name === 'window' && view.range === 'custom'))
                        out.set(name, view[name]);
        if (!view.live && view.range !== 'custom')
                out.set('live', '0');
        if (view.all)
                out.set('all', '1');
        return `#${out}`.replaceAll('%3A', ':');
}

/* Steps that divide a minute, an hour or a day, and about this many windows. */
const STEPS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400, 604800];
const WINDOWS = 300;

/*
 * The windows to ask for. A step is at least two reporting periods of the mgr where the range
 * allows, because the ratio of a shorter window is not trustworthy.
 */
export function windows(view, now, mgr_period) {
        const custom = view.range === 'custom';
        const to = custom ? view.to : now;
        const from = custom ? view.from : now - SECONDS[view.range];
        const length = Math.max(to - from, 1);
        const least = Math.max(length / WINDOWS, Math.min(2 * (mgr_period || 5), length / 6));
        const step = STEPS.find(s => s >= least) ?? Math.ceil(least);
        const first = Math.floor(from / step) * step;
        return { from: first, to: first + Math.max(1, Math.floor((to - first) / step)) * step, step };
}

/* The last minute whose samples should all have arrived. */
const SETTLE_SECONDS = 15;

export function last_minute(now) {
        const to = Math.floor((now - SETTLE_SECONDS) / 5) * 5;
        return { from: to - 60, to, step: 60 };
}
