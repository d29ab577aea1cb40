//! The laws of training: what holds for every schedule, layer, codec and number of workers. One module a law.

mod fixture;

mod deadlines;
mod defects_of_retexo;
mod halo_adjoint;
mod ledger_is_prediction;
mod one_is_many;
mod real_data;
mod retexo_closed_form;
mod same_bits;
