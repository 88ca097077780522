/** Short messages at the top of the page: what was done, what went wrong. */
import Flashbar, { type FlashbarProps } from '@cloudscape-design/components/flashbar';
import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from 'react';

import { apiError } from '../api/client';

interface Notices {
  done: (text: string) => void;
  failed: (what: string, error: unknown) => void;
}

const Context = createContext<Notices>({ done: () => undefined, failed: () => undefined });
const Shown = createContext<FlashbarProps.MessageDefinition[]>([]);
const MOST = 4;
const STAYS = 6_000;

export function useNotices(): Notices {
  return useContext(Context);
}

export function NoticesProvider({ children }: { children: ReactNode }): ReactNode {
  const [items, setItems] = useState<FlashbarProps.MessageDefinition[]>([]);
  const drop = useCallback((id: string) => setItems((before) => before.filter((item) => item.id !== id)), []);
  const add = useCallback(
    (type: 'success' | 'error', header: string, content?: string) => {
      const id = crypto.randomUUID();
      const item = { id, type, header, content, dismissible: true, onDismiss: () => drop(id) };
      // The same message is shown once, however often it comes.
      setItems((before) => [item, ...before.filter((other) => other.header !== header || other.content !== content)].slice(0, MOST));
      if (type === 'success') setTimeout(() => drop(id), STAYS);
    },
    [drop],
  );
  const notices = useMemo<Notices>(
    () => ({
      done: (text) => add('success', text),
      failed: (what, error) => {
        const told = apiError(error);
        if (told.status !== 401) add('error', what, told.requestId ? `${told.message} (request ${told.requestId})` : told.message);
      },
    }),
    [add],
  );
  return (
    <Context value={notices}>
      <Shown value={items}>{children}</Shown>
    </Context>
  );
}

export function Flashes(): ReactNode {
  return <Flashbar items={useContext(Shown)} />;
}
