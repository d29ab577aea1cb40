//! What a layer keeps from one of its functions to the next.

use std::any::Any;

/// The memory of one layer in one place of a network. Whoever drives the layer keeps it between calls and from round to
/// round.
#[derive(Default)]
pub struct State {
    /// How often each halo row counts, for layers that weigh sources ([`super::Absence::Weighed`]); empty if each
    /// counts once. The driver sets it before the halo block is folded.
    pub presence: Vec<f32>,
    /// What the layer keeps for itself.
    pub own: Slot,
    /// What stands around the layer keeps for itself.
    pub(super) around: Slot,
}

/// Room for one value of a type that only the layer knows, made when it is first asked for and used again from then on.
///
/// A type parameter on [`super::Layer`] would have been checked by the compiler, but then layers of a network could not
/// stand in one list. The check of the type costs one comparison a call.
#[derive(Default)]
pub struct Slot {
    value: Option<Box<dyn Any + Send>>,
}

impl Slot {
    /// The kept value. Where there is none of this type yet, its default takes the place of whatever there was.
    pub fn get<T: Any + Send + Default>(&mut self) -> &mut T {
        if !self.value.as_ref().is_some_and(|value| value.is::<T>()) {
            self.value = Some(Box::<T>::default());
        }
        let value = self.value.as_mut().and_then(|value| value.downcast_mut());
        value.expect("the value was just made where it was missing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_its_value_until_another_type_is_asked_for() {
        let mut slot = Slot::default();
        slot.get::<Vec<f32>>().push(1.0);
        assert_eq!(slot.get::<Vec<f32>>(), &[1.0]);
        assert_eq!(*slot.get::<u64>(), 0);
        assert!(slot.get::<Vec<f32>>().is_empty());
    }
}
