"""Names in ``gradlint`` that vulture finds no use of, though each has one; a reason for each group.

``pyproject.toml`` names what is used by a pattern or a decorator. An entry here that no longer
stands for anything can go.
"""

# ruff: noqa: B018, F821

# Part of an interface that Python, torch, Typer, rich, pytest or PyYAML calls.
__dir__  # of the package
list_commands  # of Typer's groups
context_settings
short_help
runtest  # of a test item
reportinfo
overflow  # of a line of rich
writelines  # of a stream
yaml_implicit_resolvers
save_for_forward  # of what stands in for ctx
set_materialize_grads
_alive  # kept so that numbers of objects stay unique
_forkserver_address  # of multiprocessing, which is made to forget it

# Looked up by the name of a command, of a function that a worker is given, or of special values.
validate
bench
coincident

# Of a program that is executed from its text, and of `sys`.
start_zygote
orig_argv
Recorder

# Fields of a pydantic model: they are read by name, or described in the schema of a spec.
model_config
description

# Methods of generated namespaces, looked up by name.
rand_like

# Read by the template of the page of HTML, and by junitparser.
caption
dots
other_sweeps
system_out

# Methods that pydantic calls of a schema's generator.
float_schema
default_schema
field_is_required
field_title_should_be_set

# For readers and tests of a report or a target.
raise_if_failed  # of a report, for tests
constructor  # what was chosen for a module that gradlint constructed
pointed  # the error's place in the text of an expression
by_code
HEADINGS
render  # a report as one text
VERDICTS
SANITIZERS

# Of a frame, which the interpreter reads.
f_trace_lines
f_trace_opcodes

# Of the module tempfile, which reads it.
tempdir
