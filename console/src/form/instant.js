import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** A date and a time of day in the viewer's zone, as one instant. */
import DatePicker from '@cloudscape-design/components/date-picker';
import FormField from '@cloudscape-design/components/form-field';
import SpaceBetween from '@cloudscape-design/components/space-between';
import TimeInput from '@cloudscape-design/components/time-input';
import { useState } from 'react';
import { VIEWERS_ZONE } from '../parts/time';
import { instantOf, partsOf } from './instants';
export function InstantField({ label, description, value, error, onChange }) {
    const [parts, setParts] = useState(() => partsOf(value));
    const set = (date, time) => {
        setParts({ date, time });
        onChange(instantOf(date, time));
    };
    return (_jsx(FormField, { label: label, description: description, constraintText: `In your time zone, ${VIEWERS_ZONE}`, errorText: error, children: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(DatePicker, { value: parts.date, placeholder: "YYYY/MM/DD", openCalendarAriaLabel: (chosen) => (chosen ? `Choose a date, ${chosen} is chosen` : 'Choose a date'), onChange: ({ detail }) => set(detail.value, parts.time) }), _jsx(TimeInput, { value: parts.time, format: "hh:mm:ss", placeholder: "hh:mm:ss", ariaLabel: "Time", onChange: ({ detail }) => set(parts.date, detail.value) })] }) }));
}
