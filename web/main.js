/*
 * The dashboard: reads the view from the address, asks the collector, and fills the page. One
 * refresh runs at a time; an answer to a view that is no longer wanted is dropped.
 */
import * as api from './api.js';
import { Chart, DRAWN } from './charts.js';
import { curve_name, figures, load as load_curve } from './curve.js';
import * as data from './data.js';
import { element, update } from './dom.js';
import { layers_empty, ratio_empty, unreachable } from './explain.js';
import { clock, duration, local_input, multiple, plain, rate, time, zone } from './format.js';
import { ladder_table } from './ladder.js';
import { LAYERS, STATES, state_text } from './layers.js';
import { table } from './tables.js';
import * as verdict from './verdict.js';
import { last_minute, parse, serialize, windows } from './view.js';

const REFRESH_MS = 5000;
const CURVES_MAX_AGE_S = 60; /* curves of long steps change no faster */

const at = id => document.getElementById(id);

let view = parse(location.hash);
let generation = 0;
let timer = null;
let shown = { clusters: [], agents: null, pools: [], curves: null };
let asked = null; /* the curve of a finding that is open: { path, answer or problem } */
let curves_key = '';
let curves_at = 0;
const hidden_layers = new Set();
const open = new Set(['objectstore']);
const sorts = {
        devices: { key: 'backs', order: 1 }, pools: { key: 'bytes', order: -1 }, agents: { key: 'hostname', order: 1 },
};
let device_pages = 1;

/* What the tests look at. */
const strata = window.strata = { charts: {}, view: () => view, data: () => shown, refreshes: 0, busy: false, error: null };

const charts = strata.charts = Object.fromEntries(['layers', 'ratio'].map(kind => [kind, new Chart(at(`${kind}-chart`), kind, {
        on_cursor: index => legends(index),
        on_select: (from, to) => choose({ range: 'custom', from: Math.floor(from), to: Math.ceil(to), window: 'range', live: false }),
})]));

/* Text with `code` in it. */
const rich = text => text.split('`').map((piece, i) => i % 2 ? element('code', {}, piece) : piece);

const empty = ({ title, text, advice }, style = '') => element('div', { class: `empty ${style}` }, element('strong', {}, title),
        element('p', {}, rich(text)), advice ? element('p', { class: 'quiet' }, rich(advice)) : null);

/* ---- the controls ---- */

function choose(change) {
        view = { ...view, ...change };
        history.replaceState(null, '', serialize(view));
        controls();
        if ('curve' in change)
                show_curves(); /* the same data, seen the other way up */
        refresh();
}

function controls() {
        for (const name of ['range', 'direction', 'measure', 'curve', 'window'])
                for (const input of document.querySelectorAll(`input[name=${name}]`))
                        input.checked = input.value === view[name];
        at('live').checked = view.live;
        at('live').disabled = view.range === 'custom';
        at('all').checked = view.all;
        at('custom').hidden = view.range !== 'custom';
        if (view.range === 'custom' && !at('custom').contains(document.activeElement)) {
                at('from').value = local_input(view.from);
                at('to').value = local_input(view.to);
        }
        at('zone').textContent = `times are ${zone()}`;
        at('forget').hidden = !api.has_token();
}

function on_change(event) {
        const { name, id, value, checked } = event.target;
        if (name === 'range' && value === 'custom') {
                const range = windows(view, api.now(), 5);
                choose({ range: 'custom', from: view.from ?? range.from, to: view.to ?? range.to, live: false, window: 'range' });
        } else if (name === 'range')
                choose({ range: value, live: true, window: view.range === 'custom' ? 'now' : view.window });
        else if (['direction', 'measure', 'curve', 'window'].includes(name))
                choose({ [name]: value });
        else if (id === 'live' || id === 'all')
                choose({ [id]: checked });
        else if (id === 'cluster')
                choose({ cluster: value });
}

function on_click(event) {
        const button = event.target.closest('button');
        if (!button)
                return;
        const { open: layer, table: name, sort, start, toggle, direction, more, curve } = button.dataset;
        if (layer) {
                if (!open.delete(layer))
                        open.add(layer);
                show_ladder();
        } else if (name) {
                sorts[name] = { key: sort, order: sorts[name].key === sort ? -sorts[name].order : Number(start) };
                show_tables();
        } else if (toggle) {
                if (!hidden_layers.delete(toggle))
                        hidden_layers.add(toggle);
                charts.layers.toggle(toggle, !hidden_layers.has(toggle));
                legends(null);
        } else if (direction)
                choose({ direction });
        else if (curve && asked?.path === curve) {
                asked = null;
                show_verdict();
        } else if (curve)
                ask_curve(curve);
        else if (more) {
                device_pages++;
                refresh();
        } else if (button.id === 'forget') {
                api.set_token(null);
                controls();
                refresh();
        }
}

function wire() {
        document.addEventListener('change', on_change);
        document.addEventListener('click', on_click);
        at('custom').addEventListener('submit', event => {
                event.preventDefault();
                choose({ from: new Date(at('from').value).getTime() / 1000, to: new Date(at('to').value).getTime() / 1000 });
        });
        at('token').addEventListener('submit', event => {
                event.preventDefault();
                api.set_token(at('token-value').value.trim());
                at('token-value').value = '';
                controls();
                refresh();
        });
        window.addEventListener('hashchange', () => {
                if (!/^#.*=/.test(location.hash) && location.hash.length > 1)
                        return; /* the skip link */
                view = parse(location.hash);
                controls();
                refresh();
        });
        document.addEventListener('visibilitychange', () => document.hidden || refresh());
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => show_curves());
        document.querySelector('.skip').addEventListener('click', event => {
                event.preventDefault();
                at('verdict').focus();
        });
}

/* ---- header and notices ---- */

function status(text, style) {
        at('status').textContent = text;
        at('status').className = `status ${style}`;
}

function show_clusters() {
        const options = shown.clusters.map(cluster => element('option', { value: cluster.fsid, selected: cluster.fsid === shown.cluster?.fsid },
                cluster.fsid === 'none' ? '(no cluster)' : `${cluster.name || 'ceph'} · ${String(cluster.fsid).slice(0, 8)}`));
        if (!options.length)
                options.push(element('option', { value: '' }, 'no cluster yet'));
        update(at('cluster'), options);
        at('cluster').parentElement.hidden = false;
        at('cluster').value = shown.cluster?.fsid ?? '';
        const health = shown.cluster?.health;
        at('health').hidden = !health;
        at('health').textContent = health ?? '';
        at('health').className = `chip ${health === 'HEALTH_OK' ? 'good' : health === 'HEALTH_ERR' ? 'bad' : 'warn'}`;
        const { cluster } = shown;
        const parts = [`collector ${location.host}`, `times are ${zone()}`];
        if (cluster && cluster.fsid !== 'none')
                parts.push(`Ceph ${cluster.release ?? '?'}, ${cluster.osds_up ?? '?'} of ${cluster.osds ?? '?'} OSDs up on ${cluster.hosts ?? '?'} host${cluster.hosts === 1 ? '' : 's'}, fsid ${cluster.fsid}`);
        at('foot').textContent = parts.join(' · ');
}

function notice({ title, text, advice }) {
        return element('div', { class: 'notice bad' }, element('div', {}, element('strong', {}, title), ' ', element('span', {}, rich(text))),
                advice ? element('p', {}, rich(advice)) : null);
}

function on_failure(error) {
        strata.error = error;
        document.querySelector('main').classList.add('stale');
        document.querySelector('main').classList.toggle('bare', !shown.cluster);
        if (error.status === 401) {
                at('token').hidden = false;
                at('token-why').textContent = api.has_token() ? `It refused the one it was given. ${spoken(error.message)}` : spoken(error.message);
                update(at('notices'));
                status('token needed', 'lost');
                at('token-value').focus();
                return;
        }
        at('token').hidden = true;
        const what = error.status === 0 ? unreachable(location.host, error.message, shown.cluster) : error.status === undefined ?
                { title: 'The page has a fault.', text: String(error.message), advice: '' } :
                { title: `${error.title || 'The collector could not answer'}:`, text: spoken(error.message), advice: '' };
        if (error.status === undefined)
                console.error(error);
        update(at('notices'), notice(what));
        status(error.status === 0 ? 'collector unreachable' : 'error', 'lost');
}

function on_success() {
        strata.error = null;
        at('token').hidden = true;
        update(at('notices'));
        document.querySelector('main').classList.remove('stale');
        document.querySelector('main').classList.toggle('bare', !shown.cluster);
        status(view.live ? `live, ${clock(api.now())}` : `as of ${clock(api.now())}`, view.live ? 'live' : '');
}

/* ---- the answer and the ladder ---- */

/* A sentence of a problem document as one of this page. */
const spoken = text => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

const when = () => view.window === 'now' ? 'in the last minute' : 'in this range';

/* Opens and closes the curve that shows it. */
const curve_button = path => element('button', { type: 'button', class: 'link', 'data-curve': path, 'aria-expanded': String(asked?.path === path) }, curve_name(path));

async function ask_curve(path) {
        const mine = asked = { path };
        show_verdict();
        try {
                mine.answer = await load_curve(path, shown.cluster.fsid, shown.range);
        } catch (error) {
                mine.problem = error.message;
        }
        if (asked === mine)
                show_verdict();
}

/* What the collector says holds the clients back, and what else it found. */
function bottleneck() {
        const said = shown.findings?.verdicts?.find(one => one.cluster === shown.cluster.fsid);
        const pieces = verdict.bottleneck(said);
        if (!pieces)
                return null;
        return element('div', { class: 'bottleneck' },
                element('p', { class: 'says' }, pieces.map(piece => piece.strong ? element('b', { class: piece.tone }, piece.text) : piece.text)),
                element('p', {}, said.sentence),
                said.advice ? element('p', { class: 'quiet' }, said.advice) : null,
                said.curves.length ? element('p', { class: 'quiet' }, 'Its curves: ', said.curves.map((curve, i) => [i ? ' · ' : '', curve_button(curve)])) : null,
                asked && said.curves.includes(asked.path) ? figures(asked) : null,
                said.doubts.map(doubt => element('p', { class: 'warn' }, doubt)),
                element('ul', { class: 'findings' }, verdict.beside(shown.findings.findings, said).map(one => element('li', {},
                        element('b', {}, one.layer), ` ${one.who}, since ${time(one.since, api.now())}: ${one.text} `, element('span', { class: 'quiet' }, one.advice)))));
}

function show_verdict() {
        const { ladder, ladder_problem, cluster } = shown;
        if (!cluster)
                return update(at('verdict'), empty(layers_empty({ ...reason_facts(), layers: {} }), 'small'));
        const why = ladder_problem ? ladder_problem.message : ladder ? null : layers_empty({ ...reason_facts(), layers: {} })?.title;
        if (why)
                return update(at('verdict'), element('p', { class: 'answer' }, spoken(why)));
        const side = ladder?.[view.direction];
        const answer = cluster.fsid === 'none' ?
                [{ text: 'Only block devices are seen here: no Ceph cluster, so no layers to compare.' }] :
                verdict.sentence(ladder, view.direction, shown.pools, when());
        const state = side?.state ?? ladder?.state;
        const doubtful = state && !['ok', 'idle', 'gap'].includes(state);
        const detail = cluster.fsid === 'none' ? '' : side?.detail ?? ladder?.detail ?? (doubtful ? state_text(state) : '');
        const chips = [doubtful ? element('span', { class: 'chip warn', title: state_text(state) }, state) : null,
                detail ? element('span', {}, detail) : null];
        const other = cluster.fsid === 'none' ? null : verdict.other(ladder, view.direction);
        update(at('verdict'),
                bottleneck(),
                element('p', { class: 'answer' }, answer.map(piece => piece.strong ? element('b', { class: piece.tone }, piece.text) : piece.text)),
                element('ul', { class: 'reasons' }, verdict.reasons(side).map(reason => element('li', {},
                        element('span', { class: 'amount' }, reason.amount), element('span', {}, reason.text)))),
                element('div', { class: 'facts' }, chips,
                        verdict.facts(side).map(([caption, value]) => element('span', {}, `${caption} `, element('b', {}, value))),
                        other ? element('button', { type: 'button', class: 'link', 'data-direction': other.opposite }, other.text) : null));
}

function show_ladder() {
        const { ladder, ladder_problem, cluster } = shown;
        const all = ladder?.[view.direction];
        const side = all && cluster?.fsid === 'none' ? { ...all, rungs: all.rungs.filter(rung => rung.layer === 'storage') } : all;
        at('ladder-window').textContent = !ladder ? '' : view.window === 'now' ? `${view.direction}s, the minute up to ${clock(ladder.to)}` :
                `${view.direction}s, ${duration(ladder.to - ladder.from)} from ${time(ladder.from, api.now())}`;
        const rungs = side?.rungs?.filter(rung => typeof rung.bytes === 'number') ?? [];
        if (ladder_problem)
                update(at('ladder'), empty({ title: 'The collector could not answer', text: ladder_problem.message }, 'small'));
        else if (!rungs.length)
                update(at('ladder'), empty(layers_empty({ ...reason_facts(), layers: {} }), 'small'));
        else
                update(at('ladder'), ladder_table(side, { measure: view.measure, open, seconds: Math.max(1e-6, ladder.to - ladder.from) }));
        at('window').disabled = !cluster;
}

/* ---- the curves ---- */

function reason_facts() {
        const range = shown.range ?? windows(view, api.now(), 5);
        return {
                cluster: shown.cluster, agents: shown.agents, now: api.now(), direction: view.direction,
                from: view.range === 'custom' ? view.from : range.from, to: view.range === 'custom' ? view.to : range.to, problem: null,
        };
}

function show_curves() {
        const curves = shown.curves;
        const facts = { ...reason_facts(), layers: curves?.layers ?? {} };
        const why_layers = layers_empty({ ...facts, problem: curves?.problem?.message });
        const values = curves ? curves[view.curve] : [];
        const why_ratio = why_layers && shown.cluster?.fsid !== 'none' ? why_layers :
                ratio_empty({ ...facts, values, states: curves?.states ?? [], problem: curves?.ratio_problem?.message });
        const common = curves && { from: curves.from, to: curves.to, step: curves.step, times: curves.times, states: curves.states, measure: view.measure, curve: view.curve };
        draw(charts.layers, why_layers, () => ({ ...common, states: layer_states(curves), columns: DRAWN.map(layer => curves.layers[layer] ?? curves.times.map(() => null)) }));
        for (const layer of hidden_layers)
                charts.layers.toggle(layer, false);
        const expected = view.curve === 'ratio' ? curves?.expected.map(e => e ? 1 / e : null) : curves?.expected;
        draw(charts.ratio, why_ratio, () => ({ ...common, columns: [values, expected] }));
        at('ratio-title').textContent = view.curve === 'ratio' ? 'Ratio' : 'Amplification';
        at('ratio-window').textContent = `${view.curve === 'ratio' ? 'filesystem / storage' : 'storage / filesystem'}, ${view.measure === 'bytes' ? 'bytes' : 'operations'} ${view.direction === 'write' ? 'written' : 'read'}`;
        at('curves-window').textContent = `${view.measure === 'bytes' ? 'throughput' : 'IOPS'}, ${view.direction}s${curves ? `, windows of ${duration(curves.step)}` : ''}`;
        show_states(curves && !why_ratio ? curves.states : []);
        legends(null);
}

/* Behind the layers a gap is only where no layer has a sample; the ratio may miss one of two. */
const layer_states = curves => curves.states.map((state, i) =>
        state === 'gap' && Object.values(curves.layers).some(values => values[i] !== null) ? 'ok' : state);

function draw(chart, why, make) {
        if (!why)
                return chart.show(make());
        chart.clear();
        chart.host.append(empty(why));
}

function show_states(states) {
        const counts = new Map();
        for (const state of states)
                counts.set(state, (counts.get(state) ?? 0) + 1);
        update(at('states'), Object.keys(STATES).filter(state => counts.has(state) && state !== 'pending').map(state => [
                element('dt', {}, element('span', { class: `swatch state-${state}` }), `${state} (${counts.get(state)} of ${states.length})`),
                element('dd', {}, STATES[state])]));
}

/* The newest window that has arrived. */
function newest(curves) {
        let i = curves.times.length - 1;
        while (i > 0 && curves.states[i] === 'pending')
                i--;
        return i;
}

/* The layers without any sample in the range, in words. */
function missing(curves) {
        const layers = Object.keys(curves.layers).filter(layer => curves.layers[layer].every(value => value === null));
        return layers.length && layers.length < LAYERS.length ? element('span', { class: 'item warn' }, `no samples of ${layers.join(', ')} in this range`) : null;
}

/* The values under the cursor, or the newest ones. */
function legends(index) {
        const curves = shown.curves;
        if (!curves)
                return;
        const i = index ?? newest(curves);
        const begin = curves.times[i];
        const span = element('span', { class: 'when' }, `${index === null ? 'newest: ' : ''}${time(begin, api.now())} – ${clock(begin + curves.step)}`);
        update(at('layers-legend'), LAYERS.filter(({ layer }) => layer in curves.layers).map(({ layer, help }) => element('button', {
                type: 'button', class: 'item', title: help, 'data-toggle': layer, 'aria-pressed': String(!hidden_layers.has(layer)),
        }, element('span', { class: `swatch of-${layer}` }), layer, element('b', {}, rate(curves.layers[layer][i], view.measure)))), missing(curves), span);
        const inverse = view.curve === 'ratio';
        const show = value => inverse ? typeof value === 'number' ? value.toFixed(3) : '–' : multiple(value);
        const expected = curves.expected[i];
        const state = curves.states[i];
        const over = curves.amplification.length && ratio_over(curves);
        update(at('ratio-legend'),
                element('span', { class: 'item' }, element('span', { class: 'swatch of-ratio' }), view.curve, element('b', {}, show(curves[view.curve][i]))),
                element('span', { class: 'item' }, element('span', { class: 'swatch dash' }), 'expected', element('b', {}, show(inverse && expected ? 1 / expected : expected))),
                element('span', { class: 'item' }, 'excess', element('b', {}, multiple(curves.excess[i]))),
                element('span', { class: 'item' }, 'state', element('b', {}, state)),
                over ? element('span', { class: 'item quiet' }, over) : null,
                element('span', { class: 'when' }, span.textContent),
                element('span', { class: 'why', 'aria-live': document.activeElement?.classList.contains('chart') ? 'polite' : 'off' },
                        curves.details[i] ?? state_text(state)));
}

function ratio_over(curves) {
        const plot = charts.ratio.plot;
        if (!plot)
                return null;
        const above = curves[view.curve].filter(value => value !== null && value > plot.scales.y.max);
        return above.length ? `${above.length} window${above.length > 1 ? 's' : ''} above the axis, up to ${plain(Math.max(...above))}${view.curve === 'ratio' ? '' : '×'}` : null;
}

/* ---- the tables ---- */

function show_tables() {
        const { devices, pools_table, agents } = shown;
        const none = shown.cluster?.fsid === 'none';
        const fill = (id, rows, text) => update(at(id), rows?.length ? table(id, rows, sorts[id]) : element('p', { class: 'quiet' }, text));
        fill('devices', devices?.rows, devices?.hidden ? 'No device here backs a known OSD; switch on “Also those that back no OSD” to see them.' : 'No device is known yet: an agent tells of them when it starts.');
        if (devices?.more)
                at('devices').append(element('button', { type: 'button', class: 'more', 'data-more': 'devices' }, 'Show more devices'));
        fill('pools', pools_table?.rows, none ? 'Pools belong to a Ceph cluster, and none is known for these hosts.' : 'No pool is known yet: an agent with the ceph source tells of them.');
        fill('agents', agents, 'No agent has delivered anything yet.');
        const minute = shown.minute ? `${view.direction}s, mean of the minute up to ${clock(shown.minute.to)}` : '';
        at('devices-window').textContent = at('pools-window').textContent = minute;
}

/* ---- one refresh ---- */

async function load(mine) {
        const { clusters } = await api.get('clusters', { limit: 1000 });
        const chosen = clusters.find(c => c.fsid === view.cluster) ?? (view.cluster ? null : clusters.find(c => c.fsid !== 'none') ?? clusters[0] ?? null);
        if (view.cluster && !chosen && clusters.length)
                throw new api.Problem(404, `the address asks for cluster ${view.cluster}, which this collector does not know; choose one above`, 'Unknown cluster.');
        const now = api.now();
        const range = windows(view, now, chosen?.mgr_stats_period);
        const minute = last_minute(now);
        const next = { ...shown, clusters, cluster: chosen, range, minute };
        const agents = data.attempt(api.list('agents', {}, 5));
        if (!chosen) {
                Object.assign(next, { agents: (await agents).answer?.rows ?? [], curves: null, ladder: null, ladder_problem: null, devices: null, pools_table: null, pools: [], findings: null });
                return next;
        }
        const of_ladder = view.window === 'now' ? minute : range;
        const key = JSON.stringify([chosen.fsid, view.range, view.from, view.to, view.direction, view.measure]);
        const future = view.range === 'custom' && (view.from >= view.to || view.from > now);
        const due = key !== curves_key || range.step <= CURVES_MAX_AGE_S || now - curves_at > CURVES_MAX_AGE_S;
        const [ladder, curves, devices, pools, heard, findings] = await Promise.all([
                future && view.window !== 'now' ? { answer: null, problem: null } :
                        data.attempt(api.get('ladder', { cluster: chosen.fsid, from: of_ladder.from, to: of_ladder.to })),
                future ? null : due ? data.curves(view, chosen.fsid, range, now) : shown.curves,
                data.attempt(data.devices(view, chosen.fsid, minute, device_pages)),
                data.attempt(data.pools(view, chosen.fsid, minute)),
                agents,
                chosen.fsid === 'none' ? { answer: null } : data.attempt(api.get('findings', { cluster: chosen.fsid, open: 'yes' })),
        ]);
        if (mine === generation && due && !future)
                [curves_key, curves_at] = [key, now];
        return Object.assign(next, {
                ladder: ladder.answer, ladder_problem: ladder.problem, curves, devices: devices.answer, pools_table: pools.answer,
                pools: pools.answer?.rows ?? [], agents: heard.answer?.rows ?? null, findings: findings.answer,
        });
}

async function refresh() {
        const mine = ++generation;
        clearTimeout(timer);
        strata.busy = true;
        try {
                const next = await load(mine);
                if (mine !== generation)
                        return;
                shown = next;
                show_clusters();
                show_verdict();
                show_ladder();
                show_curves();
                show_tables();
                on_success();
        } catch (error) {
                if (mine !== generation)
                        return;
                on_failure(error);
        }
        strata.refreshes++;
        strata.busy = false;
        /* A lost collector is asked again even when the view is not live. */
        if ((view.live || strata.error?.status === 0) && !document.hidden && strata.error?.status !== 401)
                timer = setTimeout(refresh, REFRESH_MS);
}

wire();
controls();
refresh();
