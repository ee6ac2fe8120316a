"""An OPC UA server with a variable for each sensor, in a thread of its own."""

from __future__ import annotations

import asyncio
import shutil
import socket
import threading


class OpcUaServer(threading.Thread):
    """A server of variables that are all 5; with `files`, it wants messages to be signed and encrypted."""

    def __init__(self, names, url=None, files=None):
        super().__init__(daemon=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = url or f"opc.tcp://127.0.0.1:{free.getsockname()[1]}/"
        self.names, self.nodes, self.files = names, {}, files
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
        if self.files is not None:
            await self._secure(server)
        space = await server.register_namespace("plant")
        for name in self.names:
            node = await server.nodes.objects.add_variable(space, name, 5.0)
            self.nodes[name] = node.nodeid.to_string()
        async with server:
            self.ready.set()
            while not self._done.is_set():
                await asyncio.sleep(0.05)

    async def _secure(self, server):
        """Talk in secret alone, and to the one client whose certificate is known."""
        from asyncua import ua
        from asyncua.crypto.truststore import TrustStore
        from asyncua.crypto.validator import CertificateValidator, CertificateValidatorOptions

        certificate, key = self.files["server"]
        policies = [ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt]
        server.set_security_policy([*policies, ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt])
        await server.set_application_uri("urn:plant.example:server")
        await server.load_certificate(certificate)
        await server.load_private_key(key)
        folder = certificate.parent / "trusted"
        folder.mkdir(exist_ok=True)
        shutil.copy(self.files["client"][0], folder)
        trusted = TrustStore([folder], [])
        await trusted.load()
        options = CertificateValidatorOptions.TRUSTED_VALIDATION | CertificateValidatorOptions.PEER_CLIENT
        server.set_certificate_validator(CertificateValidator(options, trusted))
