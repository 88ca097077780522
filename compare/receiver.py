"""The server of the URL that jobs call: `python -m compare.receiver LOG` notes the arrival of each request, and answers 204."""

import asyncio
import os
import sys
import time

from local.aws import HOST

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


async def main(log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                job = request.split(b" ", 2)[1].rpartition(b"?")[2]
                os.write(file, b"%s %.6f\n" % (job, time.time()))
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, HOST, 0, backlog=1_024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
