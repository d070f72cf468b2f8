//! Prints the links of this namespace in full, as JSON lines: `cargo run -p linerate-link --example inventory [LINK]`.

use linerate_link::inventory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let links = match std::env::args().nth(1) {
        Some(link) => vec![inventory::in_full(&link)?],
        None => inventory::all()?,
    };
    for link in links {
        println!("{}", serde_json::to_string(&link)?);
    }
    Ok(())
}
