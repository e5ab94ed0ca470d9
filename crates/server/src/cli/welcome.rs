//! The start-up message of a server: its address, and how to connect.

use super::flags::ServeOptions;
use tokio::net::TcpListener;

/// Printed to standard error, like the log.
pub fn show(options: &ServeOptions, http: &Option<TcpListener>, sse: &Option<TcpListener>) {
    if let Some(address) = address(http) {
        eprintln!("{}", http_message(options, &address));
    }
    if let Some(address) = address(sse) {
        eprintln!("Heapstead listens on http://{address}/sse (the older MCP transport)\n");
    }
}

fn address(listener: &Option<TcpListener>) -> Option<String> {
    Some(listener.as_ref()?.local_addr().ok()?.to_string())
}

fn http_message(options: &ServeOptions, address: &str) -> String {
    let url = format!("http://{address}");
    let code = if options.stateless { r#"{"code": "console.log(1 + 1)"}"# } else { r#"{"code": "1 + 1", "wait_secs": 10}"# };
    // The token stays a variable, because this output ends up in logs.
    let (claude, cursor, curl) = match options.auth.is_on() {
        false => ("", "", ""),
        true => (
            r#" --header "Authorization: Bearer $HEAPSTEAD_TOKEN""#,
            r#", "headers": { "Authorization": "Bearer ${env:HEAPSTEAD_TOKEN}" }"#,
            r#" -H "authorization: Bearer $HEAPSTEAD_TOKEN""#,
        ),
    };
    let mut lines = vec![
        format!("Heapstead listens on {url}"),
        String::new(),
        format!("  Claude Code    claude mcp add --transport http heapstead {url}/mcp{claude}"),
        format!(r#"  Cursor         in ~/.cursor/mcp.json: {{ "mcpServers": {{ "heapstead": {{ "url": "{url}/mcp"{cursor} }} }} }}"#),
        format!("  curl           curl -s {url}/api/exec -H 'content-type: application/json'{curl} -d '{code}'"),
        format!("  Documentation  {url}/docs"),
        String::new(),
    ];
    if let Some((program, arguments)) = stdio_command(options) {
        let quoted: Vec<_> = arguments.iter().map(|argument| format!("\"{argument}\"")).collect();
        lines.extend([
            "Without this server, over standard input and output, with the same folders and as owner `local`:".to_owned(),
            String::new(),
            format!("  Claude Code    claude mcp add heapstead -- {program} {}", arguments.join(" ")),
            format!(
                r#"  Cursor         {{ "mcpServers": {{ "heapstead": {{ "command": "{program}", "args": [{}] }} }} }}"#,
                quoted.join(", ")
            ),
            String::new(),
        ]);
    }
    lines.join("\n")
}

/// The command a client can start itself. `None` if it contains characters that shells or JSON would have to escape.
fn stdio_command(options: &ServeOptions) -> Option<(String, [String; 4])> {
    let program = std::env::current_exe().ok()?.to_str()?.to_owned();
    let arguments = options.stores.folder_arguments()?;
    let plain = |word: &String| word.chars().all(|character| character.is_alphanumeric() || "/._-+".contains(character));
    (!options.stateless && plain(&program) && arguments.iter().all(plain)).then_some((program, arguments))
}
