/* Numbers as an operator reads them: three digits, the unit always there, "–" for no value. */
export const NONE = '–';

const is_number = value => typeof value === 'number' && Number.isFinite(value);

/* A narrow no-break space between thousands. */
const grouped = text => text.replace(/\B(?=(\d{3})+$)/g, '\u202f');

function digits(value) {
        const size = Math.abs(value);
        return size >= 99.95 || size === 0 ? grouped(value.toFixed(0)) : value.toFixed(size >= 9.995 ? 1 : 2);
}

function scaled(value, base, units) {
        let i = 0;
        while (Math.abs(value) >= base * 0.9995 && i < units.length - 1) {
                value /= base;
                i++;
        }
        return `${i === 0 && Number.isInteger(value) ? value : digits(value)} ${units[i]}`.replace('-', '−');
}

const SI = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export const bytes = value => is_number(value) ? scaled(value, 1000, SI) : NONE;
export const throughput = value => is_number(value) ? `${bytes(value)}/s` : NONE;
/* Request sizes are powers of two by nature: 16 KiB, not 16.4 kB. */
export const size = value => is_number(value) && value > 0 ? scaled(value, 1024, BINARY) : NONE;

export function operations(value) {
        if (!is_number(value))
                return NONE;
        return value >= 9999.5 ? scaled(value, 1000, ['/s', 'k/s', 'M/s', 'G/s']) : `${digits(value)} /s`;
}

export const rate = (value, measure) => measure === 'ops' ? operations(value) : throughput(value);
export const multiple = value => is_number(value) ? `${value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2)}×` : NONE;
export const fraction = value => is_number(value) ? `${(value * 100).toFixed(value >= .0995 ? 0 : 1)} %` : NONE;
export const share = value => is_number(value) ? `${(value * 100).toFixed(1).replace(/^-0\.0$/, '0.0').replace('-', '−')} %` : NONE;
export const plain = value => is_number(value) ? digits(value) : NONE;
export const count = value => is_number(value) ? grouped(String(Math.round(value))) : NONE;

export function latency(seconds) {
        if (!is_number(seconds))
                return NONE;
        return seconds >= .9995 ? `${digits(seconds)} s` : seconds >= .9995e-3 || seconds === 0 ?
                `${digits(seconds * 1e3)} ms` : `${digits(seconds * 1e6)} µs`;
}

export function duration(seconds) {
        if (!is_number(seconds))
                return NONE;
        for (const [unit, length] of [['d', 86400], ['h', 3600], ['min', 60]])
                if (seconds >= length * (unit === 'd' ? 2 : 1.5))
                        return `${Number((seconds / length).toFixed(seconds / length < 10 ? 1 : 0))} ${unit}`;
        return seconds >= 1 ? `${Math.round(seconds)} s` : `${Math.round(seconds * 1000)} ms`;
}

const pad = number => String(number).padStart(2, '0');

export function clock(seconds) {
        const date = new Date(seconds * 1000);
        return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

export function day(seconds) {
        const date = new Date(seconds * 1000);
        return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/* A time, with the day where it is not the day of @now. */
export const time = (seconds, now) => !is_number(seconds) ? NONE :
        day(seconds) === day(now) ? clock(seconds) : `${day(seconds)} ${clock(seconds)}`;

export function zone() {
        const minutes = -new Date().getTimezoneOffset();
        const size = Math.abs(minutes);
        return minutes === 0 ? 'UTC' : `UTC${minutes < 0 ? '−' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

/* The text of an input of type datetime-local. */
export const local_input = seconds => `${day(seconds)}T${clock(seconds)}`;

/* "a", "a and b", "a, b and c". */
export const list = words => words.length < 2 ? words.join('') :
        `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`;
