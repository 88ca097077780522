/** Whoever does the work of a job that was taken over: an address that takes it, and reports on it. */
import { createServer } from 'node:http';
export async function taken() {
    let come = () => undefined;
    const called = new Promise((resolve) => (come = resolve));
    const server = createServer((request, response) => {
        come(request.headers);
        response.writeHead(202).end('taken');
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    return {
        url: `http://127.0.0.1:${server.address().port}/work`,
        called,
        report: async (verb, body) => {
            const headers = await called;
            const answer = await fetch(`${String(headers['punctual-callback-url'])}/${verb}`, {
                method: 'POST',
                headers: { 'content-type': 'application/json', authorization: `Bearer ${String(headers['punctual-callback-token'])}` },
                body: JSON.stringify(body),
            });
            if (!answer.ok)
                throw new Error(`${verb}: ${answer.status} ${await answer.text()}`);
        },
        close: () => server.close(),
    };
}
