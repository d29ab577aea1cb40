//! Open lists of what a configuration chooses by name: layers, optimisers, rate schedules.

/// A member of a registry.
pub trait Kind: 'static {
    /// The name in configurations.
    fn name(&self) -> &'static str;

    /// Every kind that this crate has, in the order in which they are listed to users.
    fn ours() -> &'static [Self]
    where
        Self: Sized;
}

/// Kinds by name: this crate's ([`Registry::default`]) and any that others add.
///
/// A registry is a value that is handed on, not a global list that is written to, so that what a name means is seen
/// from the arguments of whoever resolves it.
#[derive(Debug)]
pub struct Registry<K: Kind> {
    kinds: Vec<&'static K>,
}

// By hand, since a derived one would ask for kinds that can be cloned, which only their references are.
impl<K: Kind> Clone for Registry<K> {
    fn clone(&self) -> Self {
        Registry { kinds: self.kinds.clone() }
    }
}

impl<K: Kind> Default for Registry<K> {
    fn default() -> Self {
        Registry { kinds: K::ours().iter().collect() }
    }
}

impl<K: Kind> Registry<K> {
    /// The registry with this kind as well; it takes the place of one of its name.
    #[must_use]
    pub fn with(mut self, kind: &'static K) -> Self {
        match self.kinds.iter_mut().find(|known| known.name() == kind.name()) {
            Some(known) => *known = kind,
            None => self.kinds.push(kind),
        }
        self
    }

    /// The kind of this name.
    pub fn get(&self, name: &str) -> Option<&'static K> {
        self.iter().find(|kind| kind.name() == name)
    }

    /// Every kind, ours first.
    pub fn iter(&self) -> impl Iterator<Item = &'static K> {
        self.kinds.iter().copied()
    }

    /// Every name, in the order of [`Registry::iter`].
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.iter().map(Kind::name)
    }
}

#[cfg(test)]
mod tests {
    use crate::layer::{LAYERS, LayerKind, LayerRegistry};

    #[test]
    fn a_foreign_kind_stands_beside_ours_and_may_take_the_place_of_one() {
        static MINE: LayerKind = LayerKind { name: "mine", ..LAYERS[0] };
        static OTHER: LayerKind = LayerKind { prefix: "others", ..LAYERS[0] };
        let registry = LayerRegistry::default().with(&MINE).with(&OTHER);
        assert_eq!(registry.names().count(), LAYERS.len() + 1);
        assert_eq!(registry.get("mine").expect("it was added").prefix, "convs");
        assert_eq!(registry.get(LAYERS[0].name).expect("it is ours").prefix, "others");
        assert!(registry.get("nobody's").is_none());
    }
}
