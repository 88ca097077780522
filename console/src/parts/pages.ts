/** Pages of a list that only knows its next one. */
import { useState } from 'react';

export interface Pages {
  /** The cursor to ask with. */
  cursor: string | undefined;
  /** For Cloudscape's pagination, once the page's own cursor is known. */
  bar: (next: string | null | undefined) => {
    currentPageIndex: number;
    pagesCount: number;
    openEnd: boolean;
    onChange: (event: { detail: { currentPageIndex: number } }) => void;
  };
}

/** Starts over when `filter` changes. */
export function usePages(filter: string): Pages {
  const [state, setState] = useState<{ filter: string; cursors: (string | undefined)[]; index: number }>({ filter, cursors: [undefined], index: 0 });
  const { cursors, index } = state.filter === filter ? state : { cursors: [undefined], index: 0 };
  return {
    cursor: cursors[index],
    bar: (next) => ({
      currentPageIndex: index + 1,
      pagesCount: Math.max(cursors.length, index + (next ? 2 : 1)),
      openEnd: Boolean(next),
      onChange: ({ detail }) => {
        const wanted = detail.currentPageIndex - 1;
        const known = next ? [...cursors.slice(0, index + 1), next, ...cursors.slice(index + 2)] : cursors;
        if (wanted < known.length) setState({ filter, cursors: known, index: wanted });
      },
    }),
  };
}
