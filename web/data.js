/*
 * Asks for what one refresh shows and lays it on one time axis. A part that fails does not take
 * the others with it: it comes back as { problem }. No answer or no right (status 0, 401) is
 * everybody's business and is thrown on.
 */
import { get, list } from './api.js';
import { LAYERS, mark_pending } from './layers.js';
import { with_means } from './tables.js';

const DEVICE_PAGE = 200;

export async function attempt(promise) {
        try {
                return { answer: await promise, problem: null };
        } catch (error) {
                if (error.status === undefined || error.status === 0 || error.status === 401)
                        throw error;
                return { answer: null, problem: error };
        }
}

/* The values of @answer at the windows of @axis; null where it has none. */
function on_axis(axis, times, values, missing = null) {
        const placed = new Array(axis.times.length).fill(missing);
        (times ?? []).forEach((t, i) => {
                const at = Math.round((t - axis.from) / axis.step);
                if (at >= 0 && at < placed.length)
                        placed[at] = values?.[i] ?? missing;
        });
        return placed;
}

export async function curves(view, cluster, range, now) {
        const query = { cluster, from: range.from, to: range.to, step: `${range.step}s` };
        const wanted = cluster === 'none' ? [] : [attempt(get('ratio', {
                ...query, upper: 'filesystem', lower: 'storage', direction: view.direction, measure: view.measure }))];
        const layers = cluster === 'none' ? LAYERS.filter(l => l.layer === 'storage') : LAYERS;
        const series = layers.map(({ layer }) => attempt(get('series', { ...query, layer, metric: `${view.direction}_${view.measure}` })));
        const [answers, [ratio]] = [await Promise.all(series), await Promise.all(wanted)];
        const n = Math.max(1, Math.round((range.to - range.from) / range.step));
        const axis = { ...range, times: Array.from({ length: n }, (_, i) => range.from + i * range.step) };
        const by_layer = {};
        const one = index => answers[index]?.answer?.series?.[0];
        layers.forEach(({ layer }, i) => { by_layer[layer] = on_axis(axis, one(i)?.t, one(i)?.value); });
        const curve = ratio?.answer?.series?.[0];
        const source = curve ?? one(layers.length - 1);
        const states = mark_pending(on_axis(axis, source?.t, source?.state, 'gap'), axis.times, axis.step, now);
        return {
                ...axis, layers: by_layer, states,
                upper: on_axis(axis, curve?.t, curve?.upper), lower: on_axis(axis, curve?.t, curve?.lower),
                amplification: on_axis(axis, curve?.t, curve?.amplification), ratio: on_axis(axis, curve?.t, curve?.ratio),
                expected: on_axis(axis, curve?.t, curve?.expected), excess: on_axis(axis, curve?.t, curve?.excess),
                details: on_axis(axis, curve?.t, curve?.detail),
                problem: answers.every(a => a.problem) ? answers[0].problem : null,
                ratio_problem: ratio?.problem ?? null,
        };
}

export async function devices(view, cluster, minute, pages) {
        const { rows, more } = await list('devices', { cluster }, pages, DEVICE_PAGE);
        const d = view.direction;
        const { answer } = await attempt(get('series', {
                cluster, layer: 'storage', by: 'device', from: minute.from, to: minute.to, step: `${minute.step}s`,
                metric: ['utilisation', 'queue', `${d}_await`, `${d}_bytes`, `${d}_ops`].join(','),
        }));
        const shown = rows.filter(row => view.all || (cluster === 'none' ? row.leaf !== false : row.osds?.length > 0));
        return { rows: with_means(shown, answer, d, row => `${row.hostname}/${row.name}`), more, hidden: rows.length - shown.length };
}

export async function pools(view, cluster, minute) {
        if (cluster === 'none')
                return { rows: [], more: false };
        const { rows, more } = await list('pools', { cluster }, 5, 200);
        const d = view.direction;
        const { answer } = await attempt(get('series', {
                cluster, layer: 'filesystem', by: 'pool', from: minute.from, to: minute.to, step: `${minute.step}s`,
                metric: [`${d}_bytes`, `${d}_ops`].join(','),
        }));
        return { rows: with_means(rows, { series: (answer?.series ?? []).map(s => ({ ...s, host: '' })) }, d, row => `/${row.name}`), more };
}
