use super::*;
use clap::CommandFactory;

#[test]
fn the_command_line_is_consistent_and_every_command_explains_itself() {
    let mut cli = Cli::command();
    cli.clone().debug_assert();
    let mut helps = cli.render_help().to_string();
    for command in cli.get_subcommands_mut() {
        assert!(command.get_about().is_some(), "{} says nothing about itself", command.get_name());
        helps.push_str(&command.render_help().to_string());
    }
    for example in ["amends demo", "amends check --config amends.toml", "Exit codes: 0 good"] {
        assert!(helps.contains(example), "{example}");
    }
}
