/** For tests: the markup of an element as it is first shown, at an address. No effect runs, so nothing is requested. */
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { createMemoryRouter, RouterProvider } from 'react-router';
export function rendered(element, address = '/') {
    const router = createMemoryRouter([{ path: '*', element }], { initialEntries: [address] });
    return renderToStaticMarkup(createElement(RouterProvider, { router }));
}
