const tie = (rope) => {
  hitch(rope);
};

function moor() {
  tie();
}
