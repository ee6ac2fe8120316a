"""An OPC UA server with a variable for each sensor, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading


class OpcUaServer(threading.Thread):
    """Serve variables that are all 5."""

    def __init__(self, names):
        super().__init__(daemon=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = f"opc.tcp://127.0.0.1:{free.getsockname()[1]}/"
        self.names, self.nodes = names, {}
        self.ready, self._done = threading.Event(), threading.Event()

    def run(self):
        asyncio.run(self._serve())

    def stop(self):
        self._done.set()
        self.join()

    async def _serve(self):
        from asyncua import Server

        server = Server()
        await server.init()
        server.set_endpoint(self.url)
        space = await server.register_namespace("plant")
        for name in self.names:
            node = await server.nodes.objects.add_variable(space, name, 5.0)
            self.nodes[name] = node.nodeid.to_string()
        async with server:
            self.ready.set()
            while not self._done.is_set():
                await asyncio.sleep(0.05)
