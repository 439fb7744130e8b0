/* What the page knows of layers, of their parts and of the states of a point. */
export const LAYERS = [
        { layer: 'filesystem', help: 'What clients asked of Ceph, from the totals of the pools' },
        { layer: 'osd', help: 'Client and replica operations that reached an OSD' },
        { layer: 'objectstore', help: 'What BlueStore with its RocksDB and BlueFS wrote and read' },
        { layer: 'storage', help: 'What the block devices that back the OSDs did, each byte once' },
];

export const PARTS = {
        client: 'client',
        replica: 'replica',
        recovery: 'recovery',
        data: 'data',
        deferred: 'deferred writes',
        wal: 'RocksDB WAL',
        sst: 'RocksDB SST',
        log: 'BlueFS journal',
        log_compaction: 'BlueFS journal, compacted',
        padding: 'padding',
        cache_hit: 'cache hits',
        cache_miss: 'cache misses',
        bluefs: 'BlueFS reads',
};

/* The parts of which the reasons of docs/api.md speak, where they mean more than the part itself. */
const REASONS = {
        deferred: 'deferred writes',
        metadata: 'RocksDB metadata',
        data: 'data beyond the copies',
        erasure: 'partial stripes',
        log: 'the BlueFS journal',
        cache_miss: 'reads beyond what clients asked for',
        bluefs: 'RocksDB reads',
};

const named = (names, name) => Object.hasOwn(names, name) ? names[name] : String(name);
export const part_name = name => named(PARTS, name);
export const reason_name = name => named({ ...PARTS, ...REASONS }, name);

/* The order is that of docs/api.md, worst first; "pending" is the page's own. */
export const STATES = {
        gap: 'No samples: the agents were not there yet, down or cut off, or what they sent is lost. No number is drawn.',
        idle: 'Too few bytes moved: a tiny denominator would make a huge ratio, so no number is drawn.',
        reset: 'A counter restarted inside the window (a daemon or a host). The number covers what was seen.',
        partial: 'Samples of some hosts or OSDs are missing, so a layer may be shown too small.',
        contaminated: 'Recovery, backfill, scrub or snap trim moved bytes that no client asked for.',
        short: 'The window is shorter than two reporting periods of the mgr: pool totals may lag behind the devices.',
        pending: 'Not here yet: agents send their samples in blocks, a few seconds late.',
};

export const state_text = state => Object.hasOwn(STATES, state) ? STATES[state] : '';

/*
 * The newest windows have no samples because they are still on their way. They are called
 * pending while they are younger than this; older ones are gaps.
 */
const PENDING_SECONDS = 45;

export function mark_pending(states, times, step, now) {
        const marked = states.slice();
        for (let i = marked.length - 1; i >= 0 && marked[i] === 'gap'; i--)
                if (times[i] + step > now - PENDING_SECONDS)
                        marked[i] = 'pending';
        return marked;
}

/* A colour of the style sheet, for the canvas. */
export const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
