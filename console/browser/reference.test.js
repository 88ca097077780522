/** The API reference in a real browser: Redoc under the console's content security policy. */
import { expect, test } from 'vitest';
import { CONSOLE, launch, open } from './driver';
test('the API reference shows the document of the stage', async () => {
    const browser = await launch();
    try {
        const page = await open(browser);
        await page.goto(`${CONSOLE}/reference.html#operation/createJob`);
        await page.getByRole('heading', { name: 'Create a job' }).first().waitFor();
        await page.getByText('TypedJobRequest').first().waitFor();
        // Redoc's own mark is an image of another host, which the policy refuses.
        expect(page.complaints.filter((each) => !each.includes('cdn.redoc.ly') && !each.includes('inline style'))).toEqual([]);
    }
    finally {
        await browser.close();
    }
});
