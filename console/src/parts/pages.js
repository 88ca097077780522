/** Pages of a list that only knows its next one. */
import { useState } from 'react';
/** Starts over when `filter` changes. */
export function usePages(filter) {
    const [state, setState] = useState({ filter, cursors: [undefined], index: 0 });
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
                if (wanted < known.length)
                    setState({ filter, cursors: known, index: wanted });
            },
        }),
    };
}
