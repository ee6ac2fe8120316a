"""Detectors fitted on a Dask cluster, on more rows than one machine holds; needs the extra `dask`."""

from __future__ import annotations

from penstock.scale.cluster import ClusterError, connect, local_client
from penstock.scale.fitting import fit

__all__ = ["ClusterError", "connect", "fit", "local_client"]
