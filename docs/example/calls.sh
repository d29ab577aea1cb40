#!/bin/sh
# Writes the example of docs/tutorial.md into the current folder: calls.csv, who calls whom, and people.csv, what is known of them.
# Nobody in it is real; the same numbers come out everywhere.
awk '
function random() { state = (state * 16807) % 2147483647; return state / 2147483647 }
BEGIN {
  state = 42; people = 3000
  split("private shop student", kinds, " ")
  print "id,age,balance,calls,class,split" > "people.csv"
  for (i = 0; i < people; i++) {
    kind = i % 3
    part = random() < 0.3 ? "train" : random() < 0.3 ? "val" : "test"
    age = random() + 0.2 * (kind == 0)
    balance = random() + 0.2 * (kind == 1)
    calls = random() + 0.2 * (kind == 2)
    printf "person-%04d,%.2f,%.2f,%.2f,%s,%s\n", i, age, balance, calls, kinds[kind + 1], part > "people.csv"
  }
  print "src,dst" > "calls.csv"
  for (call = 0; call < 6 * people; call++) {
    from = int(random() * people); to = int(random() * people)
    # Seven calls in ten stay among people of one kind.
    if (random() < 0.7) to = (to - to % 3 + from % 3) % people
    printf "person-%04d,person-%04d\n", from, to > "calls.csv"
  }
}'
