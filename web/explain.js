/*
 * Why a graph is empty and what to do about it. Pure: answers { title, text, advice } or null
 * when there is something to draw. The first reason that holds wins, the most basic one first.
 */
import { duration, time } from './format.js';

const AGENT = 'Start strata-agentd on each node with this collector as its server; `strata-agentd --check` tells whether its configuration is right.';

export const unreachable = (address, detail, seen) => ({
        title: `The collector at ${address} cannot be reached`,
        text: `${detail[0].toUpperCase()}${detail.slice(1)}. The page asks again every 5 seconds${seen ? '; what stands below is what it said last' : ''}.`,
        advice: 'Look at `systemctl status strata-collectord` on its host, and at a proxy or firewall on the way.',
});

function range_reason({ from, to, now }) {
        if (from >= to)
                return { title: 'The range ends before it begins', text: 'There is no time between its two ends.', advice: 'Swap From and to.' };
        if (from > now)
                return { title: 'The range is in the future', text: `It begins at ${time(from, now)}; by the collector's clock it is ${time(now, now)}.`,
                        advice: 'Choose an earlier From, or one of the ranges up to now.' };
        return null;
}

function source_reason({ cluster, agents, now }) {
        if (agents && agents.length === 0)
                return { title: 'No agent has delivered anything yet', text: 'The collector runs, but nobody sends it samples.', advice: AGENT };
        const freshest = Math.min(...(agents ?? []).map(agent => agent.age ?? Infinity));
        if (Number.isFinite(freshest) && freshest > 120)
                return { title: 'No agent delivers at the moment', text: `The last upload came ${duration(freshest)} ago.`,
                        advice: 'Look at `systemctl status strata-agentd` on the nodes; what they sample meanwhile waits in their spool.' };
        if (cluster && typeof cluster.last_sample === 'number' && cluster.last_sample < now - 120)
                return { title: 'No samples in this range', text: `The last filesystem sample came ${duration(now - cluster.last_sample)} ago.`,
                        advice: 'Choose a range around that time.' };
        return null;
}

const every = (states, wanted) => states.length > 0 && states.every(state => wanted.includes(state));

/* The chart of all layers: @layers maps a layer to its values. */
export function layers_empty(facts) {
        const range = range_reason(facts);
        if (range)
                return range;
        if (facts.problem)
                return { title: 'The collector could not answer', text: facts.problem, advice: '' };
        if (Object.values(facts.layers).some(values => values.some(value => value !== null)))
                return null;
        return source_reason(facts) ?? { title: 'No samples in this range',
                text: 'No layer has a sample between its two ends: the agents were not there yet, were cut off, or the samples are older than the collector keeps.',
                advice: 'Choose another range; the table of agents says since when and how fresh each one is.' };
}

/* The chart of the ratio. */
export function ratio_empty(facts) {
        const range = range_reason(facts);
        if (range)
                return range;
        if (facts.cluster?.fsid === 'none')
                return { title: 'There is no ratio without a filesystem layer',
                        text: 'These hosts back no OSD of a known Ceph cluster, so only their block devices are seen, and a ratio needs two layers.',
                        advice: 'If they do belong to a cluster: give one agent a keyring and set `enabled = yes` in its [ceph] section; it finds which device backs which OSD.' };
        if (facts.problem)
                return { title: 'The collector could not answer', text: facts.problem, advice: '' };
        if (facts.values.some(value => value !== null))
                return null;
        const basic = source_reason(facts);
        const { filesystem, storage } = facts.layers;
        const has = values => (values ?? []).some(value => value !== null);
        if (!has(filesystem) && has(storage))
                return { title: 'No filesystem samples', text: 'The devices are seen, but nobody reads the totals of the pools, and a ratio needs both.',
                        advice: 'One agent per cluster needs the `ceph` source: a keyring that may read (`ceph auth` caps mon "allow r", mgr "allow r") and a reachable mon. Its log says what is in its way.' };
        if (has(filesystem) && !has(storage))
                return { title: 'No storage samples', text: 'The pools are seen, but no agent samples the devices that back the OSDs.', advice: AGENT };
        if (every(facts.states, ['idle', 'pending', 'gap']) && facts.states.includes('idle'))
                return { title: `The cluster is idle: no ${facts.direction}s to judge`,
                        text: 'Too few bytes moved in every window: a ratio of almost nothing would be a huge and meaningless number.',
                        advice: `Choose a busier range, or look at ${facts.direction === 'write' ? 'reads' : 'writes'}.` };
        return basic ?? { title: 'No samples in this range', text: 'Every window is a gap: no agent delivered samples for it.',
                advice: 'Choose another range; the table of agents says how fresh each one is.' };
}
