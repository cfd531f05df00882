"""A folder and an S3 (SeaweedFS) promise the same."""

from __future__ import annotations

from holdfast.testing.conformance import BlobLinksConformance, BlobsConformance


class TestBlobs(BlobsConformance):
    pass


class TestLinks(BlobLinksConformance):
    pass
