//! A closed door: the frame stays, and everybody learns why the run cannot go on, whomever they wait for.

use laconic_wire::*;
use std::thread;
use std::time::Duration;

fn tag(content: Content, round: u32) -> Tag {
    Tag { content, purpose: FramePurpose::Training, direction: Direction::Forward, layer: 1, round, step: 0 }
}

/// Worker 1 may send no scores, and that is what worker 0 waits for; worker 2 waits for worker 0.
fn live(mut end: Metered) -> (WireError, Metered) {
    let rank = end.rank();
    let (hidden, scores) = (tag(Content::HiddenRows, 3), tag(Content::Scores, 4));
    let mut work = || {
        for peer in rank.others(3) {
            end.send(peer, Frame::new(hidden, Vec::new()))?;
        }
        for peer in rank.others(3) {
            end.recv(peer, hidden)?;
        }
        match rank.0 {
            0 => end.recv(Rank(1), scores).map(drop),
            1 => end.send(Rank(0), Frame::new(scores, Vec::new())),
            _ => end.recv(Rank(0), scores).map(drop),
        }
    };
    let error = work().unwrap_err();
    (error, end)
}

#[test]
fn a_closed_door_keeps_the_frame_and_all_workers_name_it() {
    let ends = threads(3, Duration::from_secs(30));
    let workers: Vec<_> = ends
        .into_iter()
        .map(|end| {
            let door = (end.rank() == Rank(1)).then(|| DenyList::parse(["class_scores:training"]).unwrap());
            let door = door.map(|list| Box::new(list) as Box<dyn Door>);
            thread::spawn(move || live(Metered::new(Box::new(end)).behind(door)))
        })
        .collect();
    let ended: Vec<(WireError, Metered)> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    let denied = WireError::Denied { from: Rank(1), to: Rank(0), tag: tag(Content::Scores, 4) };
    for (error, end) in &ended {
        assert_eq!(*error, denied);
        let of_round = |round| end.sent().total_of_round(round).frames;
        assert_eq!((of_round(3), of_round(4)), (2, 0), "rank {}: two frames, and not the third", end.rank());
    }
    assert_eq!(denied.to_string(), "rank 1 may not send rank 0 class scores for training (layer 1, forward, round 4)");
}

#[test]
fn who_hears_everybody_in_turn_learns_of_a_closed_door_too() {
    let mut ends = threads(2, Duration::from_secs(30)).into_iter().map(|end| Metered::new(Box::new(end)));
    let (mut hears, says) = (ends.next().unwrap(), ends.next().unwrap());
    let mut says = says.behind(Some(Box::new(DenyList::parse(["models"]).unwrap())));
    let denied = says.send(Rank(0), Frame::new(tag(Content::Models, 0), Vec::new())).unwrap_err();
    assert_eq!(hears.poll(Rank(1)).unwrap_err(), denied);
}

#[test]
fn who_takes_leave_is_gone_for_those_who_wait_and_those_who_look_though_its_end_is_there() {
    let mut ends = threads(3, Duration::from_secs(30)).into_iter().map(|end| Metered::new(Box::new(end)));
    let [leaves, waits, looks] = [(); 3].map(|()| ends.next().unwrap());
    let (mut waits, mut looks) = (waits.counted_as(FramePurpose::Evaluation), looks);
    let mut leaves = leaves.counted_as(FramePurpose::Evaluation);
    let said = Frame::new(tag(Content::HiddenRows, 1), Vec::new());
    leaves.send(Rank(1), said).unwrap();
    leaves.take_leave();
    assert_eq!(waits.recv(Rank(0), tag(Content::HiddenRows, 1)).unwrap().tag(), tag(Content::HiddenRows, 1));
    let gone = |error: &WireError| matches!(error, WireError::Gone { peer: Rank(0), sending: false, .. });
    assert!(gone(&waits.recv(Rank(0), tag(Content::HiddenRows, 2)).unwrap_err()));
    assert!(gone(&looks.poll(Rank(0)).unwrap_err()));
    // What was sent, and that it was for evaluations, is the same at both ends.
    let kinds = |ledger: &laconic_wire::Ledger| ledger.totals_by_kind();
    assert_eq!(kinds(leaves.sent())[Kind::Evaluation], kinds(waits.received())[Kind::Evaluation]);
    assert_eq!(kinds(leaves.sent())[Kind::Evaluation].frames, 1);
}
