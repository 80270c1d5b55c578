"""Every incident of docs/incidents.md happens, shows what the page shows, and ends with a proven table by its steps."""

import re
import tomllib
from pathlib import Path

import pytest

from resources.explanations.texts import explanations
from resources.settings.settings import PATH_VARIABLE
from tests.docs.pages import Block, anchor_of
from tests.incidents.incidents import INCIDENTS, Incident
from tests.incidents.page import PARTS, Section, Shown, sections, symptoms
from tests.incidents.world import TOPIC, IncidentWorld

SECTIONS = sections()
SYMPTOMS = {symptom.title: symptom for symptom in symptoms()}

WITHOUT_CODE = {"Lag grows and nothing is loaded", "A person asks to be forgotten"}
"""Only a warning shows a hanging transaction, and nothing fails if a person asks."""
_CODE = re.compile(r"\bPS-\d{3}\b")
_GAP = re.compile(r"[a-z]+ (\d+)")


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in a folder of its own, with a stdin that looks like a terminal, so that commands ask for confirmation."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda stream: stream.name == "<stdin>")
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.happen.__name__)
def test_the_steps_of_the_page_end_the_incident_with_a_proven_table(incident: Incident, tmp_path: Path) -> None:
    section = SECTIONS[incident.section]
    with IncidentWorld(home=tmp_path) as world:
        incident.happen(world)
        for number in incident.sights:
            seen = section.sights[number]
            printed = world.penstock(seen.command).output
            assert seen.missing_in(printed) == [], printed
        for step in section.steps:
            for block in step.blocks:
                carry_out(block, world)
            if not step.blocks:
                world.end_fault()
        assert not world.has_fault, "no step lets the operator repair what is broken"
        check_proof(section.proof, incident, world)


def carry_out(block: Block, world: IncidentWorld) -> None:
    """Do what a block of a step says. A command of another program is the work of the operator."""
    if block.language == "toml":
        world.configure(tomllib.loads(block.text))
        return
    for command in block.commands():
        if command.startswith("penstock "):
            result = world.penstock(command)
            assert result.exit_code == 0, result.output
        else:
            assert f" {TOPIC} " in command
            world.end_fault()


def check_proof(proof: Shown, incident: Incident, world: IncidentWorld) -> None:
    """Check that the last command of a section proves the table, and what the incident has cost."""
    result = world.penstock(proof.command)
    assert result.exit_code == 0, result.output
    assert proof.missing_in(result.output) == [], result.output
    *partitions, proven, note = result.output.splitlines()[1:]
    assert note == "values were not read; `--files` reads every page"
    assert proven == f"proven {TOPIC}: {incident.rows:,} rows, each exactly once"
    assert (
        sum(int(count) for line in partitions for count in _GAP.findall(line.rstrip().split("  ")[-1])) == incident.lost
    )


def test_each_section_and_each_sight_has_an_incident() -> None:
    sights = {(title, number) for title, section in SECTIONS.items() for number in range(len(section.sights))}
    assert sights == {(incident.section, number) for incident in INCIDENTS for number in incident.sights}
    assert len(SECTIONS) == 15


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_each_section_has_the_same_parts(section: Section) -> None:
    assert tuple(section.parts) == PARTS
    assert [step.number for step in section.steps] == list(range(1, len(section.steps) + 1))
    assert section.proof.command == f"penstock verify {TOPIC}"


def test_the_table_of_symptoms_leads_to_each_section() -> None:
    assert list(SYMPTOMS) == list(SECTIONS)
    assert all(symptom.anchor == anchor_of(symptom.title) for symptom in SYMPTOMS.values())


@pytest.mark.parametrize("title", SECTIONS)
def test_the_code_of_a_message_leads_to_its_section(title: str, tmp_path: Path) -> None:
    """A code is in the table of symptoms, and `penstock explain` names its section, or one that leads on to it."""
    section, symptom = SECTIONS[title], SYMPTOMS[title]
    shown = _CODE.findall(section.parts["What you see"])
    assert bool(shown) == (title not in WITHOUT_CODE)
    assert set(shown) <= set(_CODE.findall(symptom.seen))
    leading_here = {symptom.anchor} | {
        anchor_of(other)
        for other, section in SECTIONS.items()
        if f"](#{symptom.anchor})" in section.parts["What you see"]
    }
    for code in _CODE.findall(symptom.seen):
        page, anchor = explanations()[code].page.split("#")
        assert (page, anchor in leading_here) == ("incidents.md", True), code
        explained = IncidentWorld(home=tmp_path).penstock(f"penstock explain {code}").output
        assert f"docs/incidents.md#{anchor}" in explained
