/*
 * Calls of the REST API. An error that reaches the page is a Problem with one sentence; the
 * token lives in this tab's session storage only. The collector's clock, not the browser's, says
 * what "now" is: it comes with every answer.
 */
const TIMEOUT_MS = 15000;
const TOKEN = 'strata-token';

export class Problem extends Error {
        constructor(status, detail, title) {
                super(detail);
                this.status = status; /* 0: no answer at all */
                this.title = title;
        }
}

let clock_offset = 0; /* collector minus browser, seconds */

export const now = () => Date.now() / 1000 + clock_offset;
export const has_token = () => sessionStorage.getItem(TOKEN) !== null;
export const set_token = token => token ? sessionStorage.setItem(TOKEN, token) : sessionStorage.removeItem(TOKEN);

function learn_clock(response, sent_ms) {
        const date = Date.parse(response.headers.get('Date') ?? '');
        if (Number.isNaN(date))
                return;
        /* The header has whole seconds: only a larger difference is one of the clocks. */
        const offset = (date + 500 - (sent_ms + Date.now()) / 2) / 1000;
        clock_offset = Math.abs(offset) > 2 ? offset : 0;
}

async function problem_of(response) {
        let body = null;
        try {
                body = await response.json();
        } catch {
                /* Not a problem document, e.g. of a proxy: the status must do. */
        }
        const text = typeof body?.detail === 'string' ? body.detail : `the collector answered ${response.status} ${response.statusText}`;
        return new Problem(response.status, text, typeof body?.title === 'string' ? body.title : '');
}

/* Parameters that are null or undefined are left out. */
export async function get(path, parameters = {}) {
        const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined));
        const headers = { Accept: 'application/json' };
        if (has_token())
                headers.Authorization = `Bearer ${sessionStorage.getItem(TOKEN)}`;
        const sent_ms = Date.now();
        let response;
        try {
                response = await fetch(`api/v1/${path}?${query}`, {
                        headers, cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(TIMEOUT_MS),
                });
        } catch (error) {
                throw new Problem(0, error.name === 'TimeoutError' ? `no answer within ${TIMEOUT_MS / 1000} seconds` : 'the connection failed');
        }
        learn_clock(response, sent_ms);
        if (!response.ok)
                throw await problem_of(response);
        try {
                return await response.json();
        } catch {
                throw new Problem(response.status, `the answer of ${path} is no JSON`);
        }
}

/* All rows of a list, up to @pages pages. Answers { rows, more }. */
export async function list(path, parameters, pages = 1, limit = 200) {
        const rows = [];
        let cursor = null;
        for (let i = 0; i < pages && (i === 0 || cursor !== null); i++) {
                const answer = await get(path, { ...parameters, limit, cursor });
                rows.push(...(Array.isArray(answer[path]) ? answer[path] : []));
                cursor = answer.cursor ?? null;
        }
        return { rows, more: cursor !== null };
}
