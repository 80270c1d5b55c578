"""The certificate of an erasure for people, as a text that can be filed."""

from collections.abc import Iterator, Sequence

from pipelines.cli.output.console import named, print_sentence
from pipelines.cli.output.printed_table import PrintedResult, PrintedResults
from resources.quantities import count, counted, size


def certificates(results: PrintedResults) -> None:
    """Print each certificate, which ends with one line: complete, or what is open."""
    for result in results:
        for line in _lines(result):
            print_sentence(line)
        print_sentence(_end(result), "complete" if result["complete"] else "open")


def _lines(result: PrintedResult) -> Iterator[str]:
    made_at = _time(result["made_at"])
    yield f"Certificate of the erasure {result['request']} from the table {result['table']}, made at {made_at}"
    for erasure in result["erasures"]:
        partitions = ", ".join(
            f"{part['rows']} of partition {part['partition']}" for part in map(named, erasure["partitions"])
        )
        yield (
            f"Erased: {counted(erasure['rows'], 'row')} ({partitions}) at {_time(erasure['time'])}, "
            f"version {erasure['before']} to {erasure['version']}"
        )
    word = "proves" if result["proven"] else "does not prove"
    yield f"Proof: `penstock verify` {word} that these rows are not in the table, and that no other row is missing"
    if result["further_tables"]:
        names = ", ".join(result["further_tables"])
        yield f"Not searched: other tables of the topic, which have erasures and certificates of their own: {names}"
    for table in result["tables"]:
        yield from _table(table, result)
    for consumer in result["consumers"]:
        word = "has taken the rows out" if consumer["has_followed"] else "still has the rows"
        yield (
            f"Consumer: {consumer['consumer']} with the output {consumer['output']} {word} (version "
            f"{consumer['version']}, seen at {_time(consumer['seen_at'])}): {_in_output(consumer)}"
        )
    if result["digests"]:
        yield (
            f"Digests: the ledger has those of {count(result['digests'])} erased records, by which loads recognise the "
            "log: who has a record can compare it, but no value can be computed from a digest"
        )
    for place in result["elsewhere"]:
        yield f"Not of Penstock: {place['place']}: {place['says']}"


def _in_output(consumer: PrintedResult) -> str:
    """The result of searching an output, and how its owner cleans it."""
    scan = consumer["scan"]
    if scan and not scan["hits"]:
        return f"{count(scan['objects'])} objects were searched, and nothing was found"
    where = f"{_result_of(scan['hits'])}; " if scan else ""
    return f"{where}{consumer['clean_up']}"


def _table(table: PrintedResult, result: PrintedResult) -> Iterator[str]:
    """The lines about one folder: its former files, and the result of the search."""
    scan, files = table["scan"], table["files"]
    there = [file for file in files if file["is_there"]]
    times = sorted(file["deleted_at"] for file in files if file["deleted_at"])
    unknown = len(files) - len(there) - len(times)
    yield f"Folder: {table['table']}, with version {table['topic_version']} of the table of the topic"
    if times:
        period = f"from {_time(times[0])} to {_time(times[-1])}"
        yield f"  {counted(len(times), 'file')} from before the erasure deleted {period}"
    if unknown:
        yield f"  {counted(unknown, 'file')} from before the erasure deleted at an unknown time"
    if there:
        deadline = _time(result["deadline"])
        yield f"  {counted(len(there), 'file')} from before the erasure will be deleted until {deadline}"
    yield (
        f"  searched: {count(scan['objects'])} objects of {size(scan['bytes'])}, {_what(result)}: "
        f"{_result_of(scan['hits'])}"
    )
    for hit in scan["hits"]:
        yield f"  {hit['path']}: {hit['place']}"


def _what(result: PrintedResult) -> str:
    if result["searched"] is None:
        return "for the erased offsets only, because no values were given"
    left_out = f" ({count(result['left_out'])} short ones in columns only)" if result["left_out"] else ""
    return f"for {counted(result['searched'], 'value')}{left_out} and for the erased offsets"


def _result_of(hits: Sequence[PrintedResult]) -> str:
    return f"found in {counted(len(hits), 'place')}" if hits else "nothing was found"


def _end(result: PrintedResult) -> str:
    topic, tasks = result["topic"], result["tasks"]
    if not tasks:
        by_offsets = (
            "" if result["searched"] is not None else ", as far as offsets show; give the values to search for them"
        )
        return f"{topic}: Penstock has no copy of the rows any more{by_offsets}"
    dates = [task["until"] for task in tasks]
    until = f"until {_time(max(dates))}" if all(dates) else "until somebody acts"
    return f"{topic}: {until}: {'; '.join(task['what'] for task in tasks)}"


def _time(text: str) -> str:
    """A time in UTC without its seconds' fraction."""
    return f"{text[:10]} {text[11:19]} UTC"
