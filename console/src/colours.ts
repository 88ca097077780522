/** The colours of charts, each with one meaning on all pages; `styles.css` has them for light and dark. Pure. */
export const COLOURS = {
  succeeded: 'var(--succeeded)',
  failed: 'var(--failed)',
  killed: 'var(--killed)',
  skipped: 'var(--skipped)',
  cancelled: 'var(--cancelled)',
  measure: 'var(--measure)',
  /** A second measure, such as a 95th percentile. */
  high: 'var(--measure-high)',
} as const;
