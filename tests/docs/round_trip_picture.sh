# examples/round_trip, drawn again, gives docs/img/round-trip.svg to the letter. Where the run changed on
# purpose: build it, and `round_trip | scripts/draw_round_trip >docs/img/round-trip.svg`.
cmake -S "$SOURCE/examples/round_trip" -B build -G Ninja -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_PREFIX_PATH="$STAGE" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wshadow -Werror"
cmake --build build
build/round_trip >run.json
cat run.json
"$SOURCE/scripts/draw_round_trip" <run.json >picture.svg
diff -u "$SOURCE/docs/img/round-trip.svg" picture.svg
