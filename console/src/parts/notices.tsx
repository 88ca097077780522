/** Short messages at the top of the page: what was done, what went wrong. */
import Flashbar, { type FlashbarProps } from '@cloudscape-design/components/flashbar';
import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from 'react';

import { apiError } from '../api/client';
import { ErrorText } from './parts';

interface Notices {
  done: (text: string) => void;
  failed: (what: string, error: unknown) => void;
}

/** A message, and its text, by which equal ones are found. */
type Notice = FlashbarProps.MessageDefinition & { id: string; said: string };

const Context = createContext<Notices>({ done: () => undefined, failed: () => undefined });
const Shown = createContext<Notice[]>([]);
const MOST = 4;
const STAYS = 6_000;

export function useNotices(): Notices {
  return useContext(Context);
}

export function NoticesProvider({ children }: { children: ReactNode }): ReactNode {
  const [items, setItems] = useState<Notice[]>([]);
  const drop = useCallback((id: string) => setItems((before) => before.filter((item) => item.id !== id)), []);
  const add = useCallback(
    (type: 'success' | 'error', header: string, said = '', content?: ReactNode) => {
      const id = crypto.randomUUID();
      const item = { id, type, header, content, said: `${header} ${said}`, dismissible: true, onDismiss: () => drop(id) };
      // The same message is shown once, however often it comes.
      setItems((before) => [item, ...before.filter((other) => other.said !== item.said)].slice(0, MOST));
      if (type === 'success') setTimeout(() => drop(id), STAYS);
    },
    [drop],
  );
  const notices = useMemo<Notices>(
    () => ({
      done: (text) => add('success', text),
      failed: (what, error) => {
        const told = apiError(error);
        if (told.status !== 401) add('error', what, told.message, <ErrorText error={told} />);
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

/** The messages, and above them what the page has to say all the time. */
export function Flashes({ standing }: { standing: readonly FlashbarProps.MessageDefinition[] }): ReactNode {
  return <Flashbar items={[...standing, ...useContext(Shown)]} />;
}
