//! Every reader on inputs that the tests write, on inputs that are broken, and on real data where it is there.

mod asked;
mod ends;
mod fixtures;
mod folders;
mod foreign;
mod formats;
mod full_precision;
mod graph_formats;
mod graph_tools;
mod held_relations;
mod hostile;
mod layouts;
mod lent;
mod matrices;
#[path = "../../../../tests/needs.rs"]
mod needs;
mod parquets;
mod passes;
mod pickles;
mod real_data;
mod rows;
mod spellings;
mod tables;
mod trials;
mod typed;
mod values;
mod written;
