"""`lessor completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click

from lessor.cli.options import command


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash   eval "$(lessor completion bash)"      in ~/.bashrc
    zsh    eval "$(lessor completion zsh)"       in ~/.zshrc
    fish   lessor completion fish > ~/.config/fish/completions/lessor.fish
    """  # noqa: D301 - click takes the character \b for "leave the lines as they are"
    from click.shell_completion import get_completion_class

    from lessor.cli.main import COMPLETE, root

    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"There is no completion for {shell}.")
    click.echo(found(root, {}, "lessor", COMPLETE).source())
