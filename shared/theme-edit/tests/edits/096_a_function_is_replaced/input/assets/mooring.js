const tie = (rope) => {
  knot(rope);
};

function moor() {
  tie();
}
