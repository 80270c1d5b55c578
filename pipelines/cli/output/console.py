"""The results of commands for people: tables and sentences on stdout, warnings and errors on stderr.

A table shows the same records that `--json` prints. `shown_status.py` has those of `penstock status`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from kafka_io.model import BrokerPartition
from pipelines.cli.output import terminal
from pipelines.cli.output.log_lines import error, failure, lead_on, printable, warning
from pipelines.cli.output.printed_table import PrintedResult, PrintedResults, print_table
from resources.errors import TableNotProven
from resources.explanations.codes import code_of
from resources.printed import printed
from resources.quantities import count, counted, run_time, size

if TYPE_CHECKING:
    from kafka_io.zookeeper.listing import SkippedNode
    from pipelines.maintenance.history import HistoryEntry

_COMPARED = ">equal >differing >only_in_table >only_on_broker >copies"
_NAMED_TOPICS = 20
_RUN_ID_LENGTH = 8  # enough to distinguish runs; Dagster shows as many
_DIGEST_LENGTH = 8


def skipped_topics(nodes: "Iterable[SkippedNode]") -> None:
    """Warn about each topic whose entry cannot be read."""
    for node in nodes:
        warning(f"skipped {node.path}: {node.reason}")


def print_sentence(text: str, highlighted: str = "") -> None:
    """Print a sentence on stdout, after a word about a success if one is given."""
    word = f"{highlighted} " if highlighted else ""
    terminal.print_line(Text.assemble((word, terminal.GOOD), printable(text)))


def named(partition: PrintedResult) -> PrintedResult:
    """The record of a partition, with its name in place of its number."""
    return {**partition, "partition": BrokerPartition(partition["broker"], partition["partition"])}


def _partitions(results: PrintedResults, field: str = "partitions") -> list[PrintedResult]:
    """The partitions of all results, each with its topic."""
    return [{**named(part), "topic": result["topic"]} for result in results for part in result[field]]


def print_problems(results: PrintedResults) -> None:
    """Print the warnings and errors of results on stderr."""
    for result in results:
        for sentence in result["warnings"]:
            warning(sentence, cluster=result["cluster"], topic=result["topic"])
        for error_object in result["errors"]:
            failure(error_object, topic=result["topic"])


def loads(results: PrintedResults) -> None:
    """Print a line per topic; warnings and errors on stderr."""
    print_table("topic >version >rows >bytes ?>files >seconds:TIME ?table", results)
    for load in (load for load in results if load["skipped"]):
        records = load["rows"] + load["skipped"]
        print_sentence(f"{load['topic']}: skipped {count(load['skipped'])} of {count(records)} records (`skip`)")
    print_problems(results)


def proofs(proofs: PrintedResults) -> None:
    """Print a line per partition, then for each table that it is proven, or its problems on stderr.

    Deep proofs have a second line per partition: how its rows compare with the broker's records.
    """
    deep = [proof for proof in proofs if "compared" in proof]
    if deep:
        print_table(f"topic partition >start:FROM >end:TO {_COMPARED} >not_compared", _partitions(deep, "compared"))
    print_table("topic partition >start >end >rows >missing >duplicates gaps", _partitions(proofs))
    for proof in proofs:
        for problem in proof["problems"]:
            error(problem, code=None if proof["errors"] else code_of(TableNotProven), topic=proof["topic"])
        if proof["proven"]:
            rows = sum(partition["rows"] for partition in proof["partitions"])
            state = proof.get("state")
            keys = f"; the state table has the newest row of {count(state['keys'])} keys" if state else ""
            print_sentence(f"{proof['topic']}: {count(rows)} rows, each exactly once{keys}", "proven")
    if any(proof["proven"] and not proof["values_read"] for proof in proofs):
        compared = " beyond what the brokers still hold" if deep else ""
        print_sentence(f"values were not read{compared}; `--files` reads every page")


def replays(results: PrintedResults) -> None:
    """Print a line per interval that was fetched again, then what changed."""
    print_table(f"topic partition >start:FROM >end:TO >rows {_COMPARED} gaps", _partitions(results))
    for replay in results:
        topic, rows = replay["topic"], f"{count(replay['rows'])} rows"
        if replay["errors"]:
            failure(replay["errors"][0], topic=topic)
        elif replay["changed"]:
            print_sentence(f"{topic}: {rows}, version {replay['version']}", "replaced")
        elif replay["partitions"]:
            print_sentence(f"{topic}: {rows} are equal to the brokers' records", "unchanged")
        else:
            print_sentence(f"{topic}: the table has no rows in this interval", "unchanged")


def states(results: PrintedResults) -> None:
    """Print a line per state table."""
    print_table("topic >since >version >changed >added >removed ?table", results)


def redecodes(results: PrintedResults) -> None:
    """Print a line per reason why records do not decode, then what changed."""
    for result in results:
        if result["reasons"]:
            print_table(">records reason", result["reasons"])
        for sentence in result["warnings"]:
            warning(sentence, topic=result["topic"])
        if result["errors"]:
            failure(result["errors"][0], topic=result["topic"])
        columns = f", new columns: {', '.join(result['columns'])}" if result["columns"] else ""
        word = "would decode" if result["dry_run"] else "decode now"
        print_sentence(
            f"{result['topic']}: {count(result['decoded'])} records {word}, "
            f"{count(result['bad_records'])} do not; version {result['version']}{columns}"
        )


def rewrites(results: PrintedResults) -> None:
    """Print what changed."""
    for result in results:
        if result["errors"]:
            failure(result["errors"][0], topic=result["topic"])
        elif result["changes"]:
            word = "would be stored" if result["dry_run"] else "are stored"
            print_sentence(
                f"{result['topic']}: {count(result['rows'])} rows {word} by other rules for "
                f"{', '.join(result['changes'])}; version {result['version']}"
            )
        else:
            print_sentence(f"{result['topic']}: all rows follow the rules; version {result['version']}", "unchanged")


def erasures(results: PrintedResults) -> None:
    """Print a line per partition with erased rows, then what happened."""
    for result in _with_partitions(results):
        word = "would be erased" if result["dry_run"] else "erased"
        print_sentence(
            f"{result['topic']}: {counted(result['rows'], 'row')} {word}, in {count(result['files'])} of "
            f"{counted(result['searched'], 'file')}; version {result['version']}"
        )
        if result["rows"] and not result["dry_run"]:
            topic, request = result["topic"], result["request"]
            print_sentence(
                f"{topic}: former files have the rows until housekeeping.erase_days are over: `penstock erase {topic} "
                "--finish` deletes them now"
            )
            print_sentence(
                f"{topic}: the request is {request}: `penstock erase {topic} --certificate {request}` says what is "
                "still open"
            )


def missing_rows(results: PrintedResults) -> None:
    """Print a line per partition with missing rows, then why they are missing and what was recorded."""
    for result in _with_partitions(results):
        for reason in result["reasons"]:
            print_sentence(f"{result['topic']}: {reason}")
        if result["gaps"]:
            print_sentence(
                f"{result['topic']}: {count(result['gaps'])} other offsets had no row before, and count as erased, "
                "too: nobody can tell them from the missing rows"
            )
        word = "would be recorded as erased" if result["dry_run"] else "recorded as erased"
        print_sentence(f"{result['topic']}: {count(result['rows'])} missing rows {word}; version {result['version']}")


def _with_partitions(results: PrintedResults) -> Iterator[PrintedResult]:
    """The results without an error, after a line per partition. For the others the error is printed."""
    for result in results:
        if result["errors"]:
            failure(result["errors"][0], topic=result["topic"])
            continue
        if result["partitions"]:
            broker = "broker " if any(part["broker"] is not None for part in result["partitions"]) else ""
            print_table(f"{broker}partition >rows", result["partitions"])
        yield result


def history(entries: Sequence["HistoryEntry"]) -> None:
    """Print a line per commit, the newest first."""
    columns = "version time:TIME_(UTC) what ?run >rows ?>bytes ?>files ?>ranges gaps notes"
    print_table(columns, map(_commit_cells, entries))


def schemas(results: PrintedResults) -> None:
    """Print a line per schema in the registry, one per text that the table has met, then one per column.

    Warnings are on stderr.
    """
    for result in results:
        if result["schemas"]:
            rows = [
                {**schema, "subjects": ", ".join(schema["subjects"]), "met": "met" if schema["is_met"] else "newest"}
                for schema in result["schemas"]
            ]
            print_table(">id type met subjects", rows)
        if result["texts"]:
            print_table(
                "part >id digest registry since",
                [{**text, "digest": text["digest"][:_DIGEST_LENGTH]} for text in result["texts"]],
            )
        columns = [{**column, "new": "new" if column["is_new"] else ""} for column in result["columns"]]
        print_table("name type field new comment", columns)
        for sentence in result["warnings"]:
            warning(sentence, topic=result["topic"])


def _commit_cells(entry: "HistoryEntry") -> PrintedResult:
    fields = printed(entry)
    return {
        **{name: fields.get(name, "") for name in ("rows", "bytes", "files", "ranges")},
        "version": str(entry.commit.version),
        "time": f"{entry.commit.time:%Y-%m-%d %H:%M:%S}",
        "what": entry.what,
        "run": fields.get("run", "")[:_RUN_ID_LENGTH],
        "gaps": entry.gaps,
        "notes": "; ".join(entry.notes),
        "style": terminal.DIM if entry.undone_by is not None else None,
    }


def rewound(rewinds: PrintedResults, *, sentence: str) -> None:
    """Print the cursors of each partition before and after, then a sentence about the new version."""
    cursors = [named(cursor) for rewind in rewinds for cursor in rewind["cursors"]]
    print_table("partition >before:CURSOR_WAS >after:IS_NOW", cursors, unknown="-")
    print_sentence(sentence)


def cursors(cursors: PrintedResults) -> None:
    """Print a line per partition."""
    print_table("cluster topic partition >offset", map(named, cursors))


def imports(plans: PrintedResults) -> None:
    """Print a line per partition: the offset of the source beside the broker's log."""
    columns = "topic partition >adopted >start:BEGINS_AT >earliest:LOG_BEGINS >latest:LOG_ENDS >left:TO_LOAD"
    print_table(columns, _partitions(plans), unknown="-")


def cleanings(results: PrintedResults, *, deleted: bool) -> None:
    """Print a line per topic."""
    collected = "collected" if deleted else "collected:TO_COLLECT"
    states = [{**state, "topic": f"{result['topic']} (state)"} for result in results if (state := result["state"])]
    print_table(f"topic >{collected} >bytes >merged >larger:INTO ?table", [*results, *states])
    _explain_cleaned_states(states)
    _explain_uploads([*results, *states], deleted=deleted)
    _explain_retired(results, deleted=deleted)
    for result in results:
        topic = result["topic"]
        if result["young"]:
            print_sentence(
                f"{topic}: {count(result['young'])} files of failed loads or of loads in progress stay, because they "
                "are younger than keep_days"
            )
        if result["empty"]:
            print_sentence(f"{topic}: the table has no rows, because its first load failed or found no records")
        if result["foreign"]:
            warning(f"nothing was done: {result['foreign']}", topic=topic)
        if result["damaged"]:
            warning(
                "small files were not merged, because data files are lost or damaged: run "
                f"`penstock replay {topic} --from earliest --to latest`",
                topic=topic,
            )
        if result["full"]:
            warning("small files were not merged, because the disk has no room for it", topic=topic)
        if result["busy"]:
            warning("small files were not merged because another writer committed first; run clean again", topic=topic)
        erased_files(topic, result["erased"], deleted=deleted)
    planned = [result["collected"] or result["uploads"] for result in [*results, *states]]
    erased = [part["deleted"] or part["beside"] for result in results for part in result["erased"]]
    if not deleted and any([*planned, *_retired_files(results), *erased]):
        print_sentence("nothing was changed; give --delete to delete these files")


def erased_files(topic: str, results: PrintedResults, *, deleted: bool) -> None:
    """Print what was deleted because of erasures."""
    for result in results:
        files = [*result["deleted"], *result["beside"]]
        if files:
            verb = "deleted from" if deleted else "would be deleted from"
            print_sentence(
                f"{topic}: {counted(len(files), 'file')} from before an erasure or a rewrite {verb} {result['table']}"
            )
        for path in result["beside"]:
            print_sentence(f"{topic}: among them {path}, which has copies of bytes")
        if result["waiting"]:
            print_sentence(
                f"{topic}: the files of {count(result['waiting'])} erasures or rewrites wait for "
                "housekeeping.erase_days or for `penstock state`"
            )
        if result["busy"]:
            warning(
                "files with erased rows stay because another writer committed first; run the command again", topic=topic
            )
        if result["unsupported"]:
            warning(f"the log keeps bounds of erased rows: {result['unsupported']}", topic=topic)


def finished_erasures(topic: str, results: PrintedResults, *, deleted: bool) -> None:
    """Print what `penstock erase --finish` has deleted, and if it is nothing, why."""
    erased_files(topic, results, deleted=deleted)
    if not any(result[part] for result in results for part in ("deleted", "beside", "waiting", "busy", "unsupported")):
        print_sentence(f"{topic}: no file from before an erasure or a rewrite is left")


def _retired_files(results: PrintedResults) -> list[int]:
    return [result["retired"]["files"] for result in results if result["retired"]]


def _explain_retired(results: PrintedResults, *, deleted: bool) -> None:
    for result in results:
        topic, retired = result["topic"], result["retired"]
        if retired and retired["files"]:
            verb = "were taken out of the table" if deleted else "would be taken out of the table"
            print_sentence(
                f"{topic}: {count(retired['rows'])} rows from before {retired['before']}, in {count(retired['files'])} "
                f"files of {size(retired['bytes'])}, {verb}"
            )
        if retired and retired["kept"]:
            warning(
                f"{count(retired['kept'])} files with old rows stay: they are damaged, or have rows of a former "
                "topic of this name, or rows that the ledger does not count; `penstock erase` takes rows of a former "
                "topic out",
                topic=topic,
            )


def _explain_uploads(results: PrintedResults, *, deleted: bool) -> None:
    for result in results:
        if result["uploads"]:
            verb = "were aborted" if deleted else "would be aborted"
            print_sentence(f"{result['topic']}: {result['uploads']} uploads of files that were never completed {verb}")
    for reason in sorted({result["uploads_unknown"] for result in results} - {""}):
        print_sentence(f"uploads that were never completed were not looked for: {reason}")


def _explain_cleaned_states(states: PrintedResults) -> None:
    for state in states:
        topic = state["topic"]
        if state["young"]:
            print_sentence(
                f"{topic}: {count(state['young'])} files of killed or running updates are younger than keep_days"
            )
        if state["foreign"]:
            warning(f"nothing was done: {state['foreign']}", topic=topic)
        if state["damaged"]:
            warning("small files were not merged, because files are lost: run `penstock state --rebuild`", topic=topic)
        if state["busy"]:
            warning("small files were not merged because an update committed first; run clean again", topic=topic)


def warmed(decoders: PrintedResults) -> None:
    """Print a line per decoder."""
    for decoder in decoders:
        print_sentence(f"{decoder['decoder']}: {run_time(decoder['seconds'])}", "ready")


def check_result(result: PrintedResult) -> None:
    """Print a line for a test of `penstock config check`. With `--quiet` it is printed only if the test failed."""
    mark = ("ok    ", terminal.GOOD) if result["ok"] else ("failed", terminal.BAD)
    with terminal.quieted(quiet=terminal.is_quiet() and result["ok"]):
        terminal.print_line(Text.assemble(mark, f" {printable(result['check'])}: {printable(result['message'])}"))
        if result["repair"]:
            print_sentence(f"       {result['repair']}")
        lead_on(*(failed["code"] for failed in result["errors"]))


def initialised(results: PrintedResults) -> None:
    """Print the tests of `penstock init`, the topics, and the commands that come next."""
    for result in results:
        for check in result["checks"]:
            check_result(check)
        if not result["written"]:
            error("no settings file was written; repair the problem and run `penstock init` again")
            return
        topics = result["topics"]
        more = f" and {count(len(topics) - _NAMED_TOPICS)} more" if len(topics) > _NAMED_TOPICS else ""
        print_sentence(f"topics: {', '.join(topics[:_NAMED_TOPICS]) or 'none yet'}{more}")
        print_sentence(f"written: {result['settings']}")
        print_sentence("next:")
        for command in result["commands"]:
            print_sentence(f"  {command}")
        print_sentence("the first load compiles its decoders, which takes seconds; `penstock warm` does so before")
