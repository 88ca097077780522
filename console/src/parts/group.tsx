/** The state of a group, and how its jobs have ended so far. */
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import type { ReactNode } from 'react';

import { COLOURS } from '../colours';
import { ENDS, lookOf, stateInWords, type Counts, type Group } from '../groups';

export function GroupState({ group }: { group: Pick<Group, 'state' | 'succeeded_at' | 'cancelled_at'> }): ReactNode {
  return <StatusIndicator {...lookOf(group)}>{stateInWords(group)}</StatusIndicator>;
}

/** A bar of the ends. The numbers are beside it in words, so screen readers skip it. */
export function Ends({ counts }: { counts: Counts }): ReactNode {
  return (
    <div className="ends" aria-hidden="true">
      {ENDS.map((end) => counts[end] > 0 && <span key={end} style={{ flexGrow: counts[end], background: COLOURS[end] }} />)}
      {counts.unfinished > 0 && <span style={{ flexGrow: counts.unfinished }} />}
    </div>
  );
}
