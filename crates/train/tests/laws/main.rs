//! The laws of training: what holds for every schedule, layer, codec and number of workers. One module a law.

mod fixture;
mod methods;
#[path = "../../../../tests/needs.rs"]
mod needs;
mod streams;

mod agreement;
mod alone;
mod assigner;
mod batches;
mod best_round;
mod brute_force;
mod budget;
mod class_weights;
mod deadlines;
mod defects_of_adaqp;
mod defects_of_retexo;
mod defects_of_varco;
mod discrepancy;
mod divergence;
mod error_feedback;
mod evaluation_counts;
mod every_method;
mod exact_ends;
mod front_door;
mod halo_adjoint;
mod handing_on;
mod inductive;
mod inference;
mod late_rows;
mod ledger_is_prediction;
mod ledger_of_methods;
mod ledger_of_starts;
mod link_batches;
mod links;
mod meaning;
mod modules;
mod one_is_many;
mod peers;
mod pipelined;
mod real_data;
mod retexo_closed_form;
mod same_bits;
mod same_bits_of_methods;
mod unbiased;
mod unknown_labels;
