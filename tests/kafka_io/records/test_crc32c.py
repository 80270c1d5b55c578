"""Where the fast package is not to be had, crcmod gives the same checksums."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from kafka_io.records import crc32c as module


def test_without_the_crc32c_package_crcmod_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crc32c", None)
    spec = spec_from_file_location("checksums_without_crc32c", module.__file__)
    assert spec is not None
    assert spec.loader is not None
    fallback = module_from_spec(spec)
    spec.loader.exec_module(fallback)
    assert fallback.crc32c is not module.crc32c
    for data in (b"", b"123456789", memoryview(bytes(range(256)) * 9)):
        assert fallback.crc32c(data) == module.crc32c(data)
    assert module.crc32c(b"123456789") == 0xE3069283
