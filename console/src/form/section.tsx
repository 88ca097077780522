/** A folded part of a form. */
import ExpandableSection from '@cloudscape-design/components/expandable-section';
import { useEffect, useState, type ReactNode } from 'react';

import type { FieldErrors } from './draft';

/** A part that is closed at first, with a line on what is set in it. It opens when something in it is wrong, and stays open when that is mended. */
export function Section({ header, summary, wrong, children }: { header: string; summary: string; wrong: boolean; children: ReactNode }): ReactNode {
  const [expanded, setExpanded] = useState(false);
  useEffect(() => {
    if (wrong) setExpanded(true);
  }, [wrong]);
  return (
    <ExpandableSection headerText={header} headerDescription={summary} expanded={expanded || wrong} onChange={({ detail }) => setExpanded(detail.expanded)}>
      {children}
    </ExpandableSection>
  );
}

export function anyOf(errors: FieldErrors, ...prefixes: string[]): boolean {
  return Object.keys(errors).some((field) => prefixes.some((prefix) => field.startsWith(prefix)));
}
