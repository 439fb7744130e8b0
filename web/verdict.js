/*
 * The answer in one sentence, from one window of the ladder: how much is multiplied, how much of
 * that the configuration explains, and which part of which layer did the rest. Pure: the page
 * makes elements of the pieces { text, tone } it returns.
 */
import { list, multiple, share, throughput } from './format.js';
import { reason_name } from './layers.js';

/* As in docs/api.md: below this excess there is nothing to explain. */
const EXCESS_MIN = 1.2;
const EXCESS_LOW = 0.8;
const REASONS_IN_SENTENCE = 3;

/* What multiplies by design, and its verb: the pools that were written to say. */
function design(pools) {
        const written = pools.filter(pool => pool.bytes > 0);
        const types = new Set((written.length ? written : pools).map(pool => pool.type));
        if (types.has('erasure'))
                return types.has('replicated') ? ['replication and erasure coding', 'explain'] : ['erasure coding', 'explains'];
        return ['replication', 'explains'];
}

const strong = (text, tone = '') => ({ text, tone, strong: true });
const plain = text => ({ text });

function no_ratio(side, word, when) {
        const rung = layer => side?.rungs?.find(r => r.layer === layer);
        const storage = rung('storage')?.bytes_per_second;
        if (side?.state === 'idle')
                return [plain(`Hardly any ${word.toLowerCase()} ${when}: `), strong('idle'), plain(', so there is no ratio to judge.')];
        if (typeof storage === 'number' && typeof rung('filesystem')?.bytes !== 'number')
                return [plain(`The devices ${word === 'Writes' ? 'write' : 'read'} `), strong(throughput(storage)),
                        plain('; there is no filesystem sample to divide it by.')];
        if (!side || side.state === 'gap')
                return [strong('No samples'), plain(` ${when}, so there is no ratio.`)];
        return [plain(`There is no ratio of ${word.toLowerCase()} ${when}.`)];
}

function write_sentence(side, pools) {
        const { amplification, expected, excess } = side;
        const [cause, explains] = design(pools);
        const judged = excess ?? (expected ? amplification / expected : null);
        if (expected === null || expected === undefined)
                return [plain('Writes are amplified '), strong(multiple(amplification)), plain('; what the pools explain is not known.')];
        if (judged >= EXCESS_MIN) {
                const names = (side.reasons ?? []).slice(0, REASONS_IN_SENTENCE).map(reason => reason_name(reason.part));
                return [plain('Writes are amplified '), strong(multiple(amplification), 'over'),
                        plain(` where ${cause} ${explains} `), strong(multiple(expected)),
                        plain(names.length ? `: ${list(names)}.` : '.')];
        }
        if (judged < EXCESS_LOW)
                return [plain('Writes are amplified '), strong(multiple(amplification)), plain(', less than the '),
                        strong(multiple(expected)), plain(` of ${cause}: compression, or bytes still on their way to the devices.`)];
        return [plain('Writes are amplified '), strong(multiple(amplification), 'fine'),
                plain(`, as ${cause} ${explains} (`), strong(multiple(expected)), plain(').')];
}

function read_sentence(side) {
        const { amplification } = side;
        const expected = side.expected ?? 1;
        if (amplification >= expected * EXCESS_MIN) {
                const names = (side.reasons ?? []).slice(0, REASONS_IN_SENTENCE).map(reason => reason_name(reason.part));
                return [plain('Devices read '), strong(multiple(amplification), 'over'), plain(' what clients asked for, where '),
                        strong(multiple(expected)), plain(` is expected${names.length ? `: ${list(names)}` : ''}.`)];
        }
        if (amplification < expected * EXCESS_LOW)
                return [plain('Devices read only '), strong(multiple(amplification), 'fine'),
                        plain(' of what clients asked for: caches of the OSDs and of the hosts serve the rest.')];
        return [plain('Devices read '), strong(multiple(amplification), 'fine'), plain(' what clients asked for, as expected ('),
                strong(multiple(expected)), plain(').')];
}

export function sentence(ladder, direction, pools, when) {
        const side = ladder?.[direction];
        if (!side || typeof side.amplification !== 'number')
                return no_ratio(side, direction === 'write' ? 'Writes' : 'Reads', when);
        return direction === 'write' ? write_sentence(side, pools) : read_sentence(side);
}

const KINDS = { cluster: 'the cluster', class: 'the devices of class ', host: 'host ', device: 'device ', osd: '', pool: 'pool ' };

/* Who is meant: "device node1/sda", "osd.3", "the cluster". */
export const entity_name = (kind, name) => kind === 'cluster' ? KINDS.cluster : `${KINDS[kind] ?? ''}${name}`;

/* The verdict of the collector, or null when nobody judges this cluster. */
export function bottleneck(said) {
        if (!said)
                return null;
        if (said.layer === 'none')
                return [strong('No bottleneck', 'fine'), plain('.')];
        const { kind, name } = said.entity ?? {};
        return [plain('The bottleneck is '), strong(said.layer === 'client' ? 'the client' : `the ${said.layer} layer`, 'over'),
                plain(said.layer === 'client' || !kind ? '.' : `: ${entity_name(kind, name)}.`)];
}

/* Findings beside the verdict, those that go on, in the order of the collector: [{ layer, who, text, advice, since }]. */
export function beside(findings, said) {
        return (findings ?? []).filter(one => one.open && !(one.rule === said?.rule && one.entity === said?.entity?.name))
                .map(one => ({ layer: one.layer, who: entity_name(one.kind, one.entity), text: one.sentence, advice: one.advice, since: one.begin }));
}

/* Why the excess is there: [{ amount, name, text }]. */
export function reasons(side) {
        return (side?.reasons ?? []).map(reason => ({
                amount: multiple(reason.amplification),
                text: String(reason.sentence ?? reason_name(reason.part)),
        }));
}

/* The short facts under the sentence: [[caption, value]]. */
export function facts(side) {
        if (!side || typeof side.amplification !== 'number')
                return [];
        const found = [['excess', multiple(side.excess)]];
        if (typeof side.ratio === 'number')
                found.push(['ratio filesystem / storage', side.ratio.toFixed(3)]);
        if (typeof side.unattributed?.share === 'number')
                found.push(['unattributed', share(side.unattributed.share)]);
        return found;
}

/* The other direction in a few words, so that it is not forgotten. */
export function other(ladder, direction) {
        const opposite = direction === 'write' ? 'read' : 'write';
        const side = ladder?.[opposite];
        const word = opposite === 'write' ? 'Writes' : 'Reads';
        if (!side)
                return null;
        if (typeof side.amplification !== 'number')
                return { opposite, text: `${word}: ${side.state === 'idle' ? 'idle' : 'no ratio'}` };
        return { opposite, text: `${word}: ${multiple(side.amplification)} where ${multiple(side.expected)} is expected` };
}
