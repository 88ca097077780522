/** Dark or light: as the system has it, unless the viewer chose. */
import { applyMode, Mode } from '@cloudscape-design/global-styles';
const NAME = 'punctual.theme';
export function isDark() {
    const chosen = localStorage.getItem(NAME);
    return chosen === null ? window.matchMedia('(prefers-color-scheme: dark)').matches : chosen === 'dark';
}
export function applyTheme() {
    applyMode(isDark() ? Mode.Dark : Mode.Light);
}
export function choose(dark) {
    localStorage.setItem(NAME, dark ? 'dark' : 'light');
    applyTheme();
}
