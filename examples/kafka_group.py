"""Divide assets among processes by a Kafka consumer group: a live server and a store for each partition.

    python examples/kafka_group.py broker:9092 plant stores.toml /var/lib/penstock

Start it on as many machines as there are to be processes: the group gives each of them some partitions, and those of a
process that ends to the others. `stores.toml` says which assets are in which partition: `[0.asset."plant1/pump1"]` with
`model = "…"`. The producer sends each row to the partition of its asset, with the asset's name as the key. A store goes
with its partition: FOLDER must be a disk that follows (a volume that is mounted again), not a network file system, as
SQLite's write-ahead log needs a local one. Offsets are in the store, in the transaction of their rows: each row counts
once.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException

from penstock.live.alarm_records import RefusedError
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions
from penstock.live.runtime import Delivery
from penstock.live.web import LiveServer


def run(
    brokers: str,
    topic: str,
    folder: Path,
    assets: Mapping[int, Mapping[str, AssetOptions]],
    stopped: Callable[[], bool] = lambda: False,
    rules: AlarmRules | None = None,
    **kafka: Any,
) -> None:
    """Serve the partitions that the group gives to this process, until `stopped` returns True; `kafka`: settings."""
    servers: dict[int, LiveServer] = {}
    settings = {"bootstrap.servers": brokers, "group.id": f"penstock-{topic}", "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", **kafka})

    def assigned(_: Any, partitions: list[Any]) -> None:
        for each in partitions:
            store = folder / f"{topic}-{each.partition}.db"
            options = ServeOptions(store=store, port=0, assets=assets[each.partition], rules=rules or AlarmRules())
            server = servers[each.partition] = LiveServer(options).__enter__()
            print(f"partition {each.partition}: {server.url}", flush=True)
            offsets = [asset.positions.get("kafka group", -1) for asset in server.service.assets.values()]
            each.offset = max(offsets) + 1 if max(offsets) >= 0 else OFFSET_BEGINNING
        consumer.assign(partitions)

    def revoked(_: Any, partitions: list[Any]) -> None:
        for each in partitions:
            servers.pop(each.partition).__exit__()

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    try:
        while not stopped():
            sent = []
            for message in consumer.consume(500, timeout=0.25):
                if message.error():
                    raise KafkaException(message.error())
                asset = (message.key() or b"").decode()
                delivery = Delivery(asset, message.value() or b"", "kafka group", ("after", message.offset()))
                sent.append(servers[message.partition() or 0].service.deliver(delivery))
            for future in sent:  # what cannot be committed now ends this process, and is read again by the next
                try:
                    future.result()
                except RefusedError as error:
                    if error.status >= 500:
                        raise
                    print(f"A message cannot be used: {error}", file=sys.stderr)
    finally:
        consumer.close()
        for server in servers.values():
            server.__exit__()


if __name__ == "__main__":
    brokers, topic, file, folder = sys.argv[1:]
    tables = tomllib.loads(Path(file).read_text())
    assets = {
        int(number): {name: AssetOptions(model=Path(given["model"])) for name, given in each["asset"].items()}
        for number, each in tables.items()
    }
    run(brokers, topic, Path(folder), assets)
