import '@cloudscape-design/global-styles/index.css';
import './styles.css';

import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import { I18nProvider } from '@cloudscape-design/components/i18n';
import messages from '@cloudscape-design/components/i18n/messages/all.en';
import Spinner from '@cloudscape-design/components/spinner';
import { StrictMode, Suspense, lazy } from 'react';
import { createRoot } from 'react-dom/client';
import { createBrowserRouter, Navigate, RouterProvider, type RouteObject } from 'react-router';

import { useFreshMe } from './api/me';
import { mayOversee, useRole, useSession } from './api/session';
import { ForOperators, Lost } from './pages/lost';
import { SignIn } from './pages/sign-in';
import { LanesProvider } from './parts/lanes';
import { NoticesProvider } from './parts/notices';
import { applyTheme } from './parts/theme';
import { homeOf } from './problems';
import { Shell } from './shell';

const StatusPage = lazy(() => import('./pages/status'));
const Tasks = lazy(() => import('./pages/tasks'));
const TaskForm = lazy(() => import('./pages/task-form'));
const TaskPage = lazy(() => import('./pages/task'));
const Jobs = lazy(() => import('./pages/jobs'));
const JobForm = lazy(() => import('./pages/job-form'));
const JobPage = lazy(() => import('./pages/job'));
const DeadLetters = lazy(() => import('./pages/dead-letters'));
const DeadLetterGroup = lazy(() => import('./pages/dead-letter-group'));
const Intake = lazy(() => import('./pages/intake'));
const IntakeLetter = lazy(() => import('./pages/intake-letter'));
const Groups = lazy(() => import('./pages/groups'));
const GroupPage = lazy(() => import('./pages/group'));
const Operations = lazy(() => import('./pages/operations'));
const Capacity = lazy(() => import('./pages/capacity'));
const Metrics = lazy(() => import('./pages/metrics'));
const Targets = lazy(() => import('./pages/targets'));
const TargetPage = lazy(() => import('./pages/target'));
const Users = lazy(() => import('./pages/users'));
const Keys = lazy(() => import('./pages/keys'));
const Receivers = lazy(() => import('./pages/receivers'));
const Monitors = lazy(() => import('./pages/monitors'));
const Calendars = lazy(() => import('./pages/calendars'));
const Teams = lazy(() => import('./pages/teams'));
const TeamPage = lazy(() => import('./pages/team'));
const InvitationPage = lazy(() => import('./pages/invitation'));
const Principals = lazy(() => import('./pages/principals'));
const Audit = lazy(() => import('./pages/audit'));
const System = lazy(() => import('./pages/system'));

const routes: RouteObject[] = [
  {
    element: <Shell />,
    children: [
      { index: true, element: <Home /> },
      { path: 'status', element: <StatusPage /> },
      { path: 'tasks', element: <Tasks /> },
      { path: 'tasks/new', element: <TaskForm /> },
      { path: 'tasks/:id', element: <TaskPage /> },
      { path: 'tasks/:id/edit', element: <TaskForm /> },
      { path: 'jobs', element: <Jobs /> },
      { path: 'jobs/new', element: <JobForm /> },
      { path: 'jobs/:id', element: <JobPage /> },
      { path: 'groups', element: <Groups /> },
      { path: 'groups/:id', element: <GroupPage /> },
      { path: 'dead-letters', element: <DeadLetters /> },
      { path: 'dead-letters/intake', element: <Intake /> },
      { path: 'dead-letters/intake/:id', element: <IntakeLetter /> },
      { path: 'dead-letters/:fingerprint', element: <DeadLetterGroup /> },
      { path: 'operations', element: <Operations /> },
      { path: 'capacity', element: <Capacity /> },
      { path: 'metrics', element: <Metrics /> },
      { path: 'targets', element: <Targets /> },
      { path: 'targets/new', element: <TargetPage /> },
      { path: 'targets/one', element: <TargetPage /> },
      { path: 'keys', element: <Keys /> },
      { path: 'receivers', element: <Receivers /> },
      { path: 'monitors', element: <Monitors /> },
      { path: 'calendars', element: <Calendars /> },
      { path: 'teams', element: <Teams /> },
      { path: 'teams/:id', element: <TeamPage /> },
      { path: 'invitation', element: <InvitationPage /> },
      { path: 'principals', element: <ForOperators><Principals /></ForOperators> },
      { path: 'users', element: <ForOperators><Users /></ForOperators> },
      { path: 'audit', element: <Audit /> },
      { path: 'system', element: <ForOperators><System /></ForOperators> },
      { path: '*', element: <Lost /> },
    ],
  },
];
let router: ReturnType<typeof createBrowserRouter> | null = null;

/** Made with the first page after a sign-in: a router reads the address once, and a single sign-on returns to another address than that of the page. */
function routerOfPages(): ReturnType<typeof createBrowserRouter> {
  router ??= createBrowserRouter(routes);
  return router;
}

/** The address without a path. */
function Home() {
  return <Navigate to={homeOf(mayOversee(useRole()))} replace />;
}

/** Without a session every address shows the sign-in, and the page it names right after it. */
function Console() {
  return useSession() === null ? <SignIn /> : <SignedIn />;
}

/** No page is shown before the role and the teams of the viewer are known. */
function SignedIn() {
  const { error, again } = useFreshMe();
  if (useSession()?.me == null) return <main className="sign-in">{error === null ? <Box textAlign="center"><Spinner size="large" /></Box> : <Alert type="error" header="Could not load your account" action={<Button onClick={again}>Try again</Button>}>{error.message}</Alert>}</main>;
  return (
    <NoticesProvider>
      <LanesProvider>
        <RouterProvider router={routerOfPages()} />
      </LanesProvider>
    </NoticesProvider>
  );
}

applyTheme();
const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no root');
createRoot(root).render(
  <StrictMode>
    <I18nProvider locale="en" messages={[messages]}>
      <Suspense>
        <Console />
      </Suspense>
    </I18nProvider>
  </StrictMode>,
);
