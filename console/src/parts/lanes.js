import { jsx as _jsx, Fragment as _Fragment, jsxs as _jsxs } from "react/jsx-runtime";
import Alert from '@cloudscape-design/components/alert';
import { createContext, useContext, useMemo, useRef } from 'react';
import { readStatus } from '../api/status';
import { mayOversee, useRole } from '../api/session';
import { useLive } from '../live';
import { concerned, drainingOf, jobs, pausedOf } from '../problems';
import { Reason, To } from './parts';
import { Ago } from './time';
const OFTEN = 2_000; // while a lane drains
const SELDOM = 15_000;
const NONE = { lanes: [], late: { count: 0, at_least: false }, draining: [], reload: () => undefined };
const Context = createContext(NONE);
export function useLanes() {
    return useContext(Context);
}
export function LanesProvider({ children }) {
    const scope = mayOversee(useRole()) ? 'all' : 'own';
    const before = useRef(NONE);
    const live = useLive(`paused ${scope}`, async () => {
        const { lanes, late } = await readStatus(scope);
        before.current = { lanes, late, draining: drainingOf(before.current, lanes) };
        return before.current;
    }, (found) => (found !== null && found.draining.length > 0 ? OFTEN : SELDOM));
    const shown = useMemo(() => ({ ...(live.data ?? NONE), reload: live.reload }), [live.data, live.reload]);
    return _jsx(Context, { value: shown, children: children });
}
function pausedInWords(lane) {
    return `The queue ${lane.lane} is paused: ${jobs(lane.waiting, lane.at_least)} ${lane.waiting === 1 ? 'waits' : 'wait'}`;
}
function drainingInWords({ lane, left, at_least }) {
    return `The queue ${lane} was resumed: ${jobs(left, at_least)} still ${left === 1 ? 'waits' : 'wait'}`;
}
/** Who paused it, when and why. */
function Pause({ lane }) {
    return (_jsxs(_Fragment, { children: ["Paused ", _jsx(Ago, { at: lane.paused_at }), lane.paused_by !== null && _jsxs(_Fragment, { children: [" by ", lane.paused_by_name ?? lane.paused_by] }), ". ", lane.reason === null ? 'No reason was given.' : _jsxs(_Fragment, { children: ["Reason: ", _jsx(Reason, { text: lane.reason })] })] }));
}
/** The messages at the top of the page with this address. */
export function useLaneFlashes(pathname) {
    const { lanes, draining } = useLanes();
    const paused = pausedOf(lanes).filter(({ lane }) => concerned(pathname, lane, true));
    const resumed = draining.filter(({ lane }) => concerned(pathname, lane, false));
    return [
        ...paused.map((lane) => ({
            id: `paused-${lane.lane}`,
            type: 'warning',
            header: pausedInWords(lane),
            content: _jsxs(_Fragment, { children: [_jsx(Pause, { lane: lane }), " ", _jsx(To, { href: "/status", color: "inverted", children: "What is wrong now" })] }),
        })),
        ...resumed.map((each) => ({ id: `resumed-${each.lane}`, type: 'in-progress', header: drainingInWords(each) })),
    ];
}
/** The same on the page of a job that waits in this lane. */
export function LaneAlert({ lane: name }) {
    const { lanes, draining } = useLanes();
    const lane = pausedOf(lanes).find((each) => each.lane === name);
    const resumed = draining.find((each) => each.lane === name);
    if (lane === undefined)
        return resumed === undefined ? null : _jsx(Alert, { type: "info", header: drainingInWords(resumed) });
    return (_jsx(Alert, { type: "warning", header: pausedInWords(lane), action: _jsx(To, { href: "/status", children: "What is wrong now" }), children: _jsx(Pause, { lane: lane }) }));
}
