import { jsx as _jsx } from "react/jsx-runtime";
import '@cloudscape-design/global-styles/index.css';
import './styles.css';
import { I18nProvider } from '@cloudscape-design/components/i18n';
import messages from '@cloudscape-design/components/i18n/messages/all.en';
import { StrictMode, Suspense, lazy } from 'react';
import { createRoot } from 'react-dom/client';
import { createBrowserRouter, Navigate, RouterProvider } from 'react-router';
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
const Operations = lazy(() => import('./pages/operations'));
const Capacity = lazy(() => import('./pages/capacity'));
const Metrics = lazy(() => import('./pages/metrics'));
const Targets = lazy(() => import('./pages/targets'));
const TargetPage = lazy(() => import('./pages/target'));
const Users = lazy(() => import('./pages/users'));
const Audit = lazy(() => import('./pages/audit'));
const System = lazy(() => import('./pages/system'));
const routes = [
    {
        element: _jsx(Shell, {}),
        children: [
            { index: true, element: _jsx(Home, {}) },
            { path: 'status', element: _jsx(StatusPage, {}) },
            { path: 'tasks', element: _jsx(Tasks, {}) },
            { path: 'tasks/new', element: _jsx(TaskForm, {}) },
            { path: 'tasks/:id', element: _jsx(TaskPage, {}) },
            { path: 'tasks/:id/edit', element: _jsx(TaskForm, {}) },
            { path: 'jobs', element: _jsx(Jobs, {}) },
            { path: 'jobs/new', element: _jsx(JobForm, {}) },
            { path: 'jobs/:id', element: _jsx(JobPage, {}) },
            { path: 'dead-letters', element: _jsx(DeadLetters, {}) },
            { path: 'dead-letters/intake', element: _jsx(Intake, {}) },
            { path: 'dead-letters/intake/:id', element: _jsx(IntakeLetter, {}) },
            { path: 'dead-letters/:fingerprint', element: _jsx(DeadLetterGroup, {}) },
            { path: 'operations', element: _jsx(Operations, {}) },
            { path: 'capacity', element: _jsx(Capacity, {}) },
            { path: 'metrics', element: _jsx(Metrics, {}) },
            { path: 'targets', element: _jsx(Targets, {}) },
            { path: 'targets/new', element: _jsx(TargetPage, {}) },
            { path: 'targets/one', element: _jsx(TargetPage, {}) },
            { path: 'users', element: _jsx(ForOperators, { children: _jsx(Users, {}) }) },
            { path: 'audit', element: _jsx(Audit, {}) },
            { path: 'system', element: _jsx(ForOperators, { children: _jsx(System, {}) }) },
            { path: '*', element: _jsx(Lost, {}) },
        ],
    },
];
const router = createBrowserRouter(routes);
/** The address without a path. */
function Home() {
    return _jsx(Navigate, { to: homeOf(mayOversee(useRole())), replace: true });
}
/** Without a session every address shows the sign-in, and the page it names right after it. */
function Console() {
    if (useSession() === null)
        return _jsx(SignIn, {});
    return (_jsx(NoticesProvider, { children: _jsx(LanesProvider, { children: _jsx(RouterProvider, { router: router }) }) }));
}
applyTheme();
const root = document.getElementById('root');
if (root === null)
    throw new Error('index.html has no root');
createRoot(root).render(_jsx(StrictMode, { children: _jsx(I18nProvider, { locale: "en", messages: [messages], children: _jsx(Suspense, { children: _jsx(Console, {}) }) }) }));
