"""Decodes a trellis by the Viterbi algorithm, one plain loop a step.

It is here to be read and to be compared with: the answers are those of the
decoder built into mmplug, to the bit. An optimal path maximises

    sum of emission  -  transition_weight * sum of distance

Sums are made in the order of the turns, in double precision, and a comparison
is strict, so that the first of equals wins.
"""

import math

from mmplug_plugin import invalid, serve


class Viterbi:
    def Decode(self, request, response, context):
        beta, columns = request.transition_weight, request.columns
        check(columns)
        scores = [None] * len(columns)  # of the best path that ends in a candidate
        back = [None] * len(columns)  # the candidate before it on that path
        last = None  # the last turn so far that has candidates
        for t, column in enumerate(columns):
            if not column.chunk_ids:
                continue
            if not context.is_active():
                return  # nobody waits for the answer
            emission = list(column.emission)
            if last is None:
                scores[t] = [0.0 + e for e in emission]
                back[t] = [None] * len(emission)
            elif not column.has_distance:
                y = first_best(weights(scores[last], columns[last], beta), predecessors(column))
                scores[t] = [scores[last][y] + e for e in emission]
                back[t] = [y] * len(emission)
            else:
                scores[t], back[t] = relax(column, emission, scores[last], beta)
            for chunk_id, score in zip(column.chunk_ids, scores[t]):
                if not math.isfinite(score):
                    raise invalid(f"turn {t}: chunk {chunk_id!r}: accumulated score {score}: scores or weights are too large", "not finite")
            last = t
        path = [-1] * len(columns)
        if last is not None:
            ends = weights(scores[last], columns[last], beta)
            x = first_best(ends, range(len(ends)))
            for t in range(last, -1, -1):
                if back[t] is not None:
                    path[t] = x
                    x = back[t][x]
            response.scores.extend(scores[last])
        response.path.extend(path)


def predecessors(column):
    """The field "from", which is a word of Python."""
    return list(getattr(column, "from"))


def relax(column, emission, before, beta):
    """Continues the best paths of the column before into this one."""
    n, distance, come = len(emission), list(column.distance), predecessors(column)
    scores, back = [], []
    for x, e in enumerate(emission):
        best, best_y = -math.inf, come[0]
        for k, y in enumerate(come):
            score = before[y] - beta * distance[k * n + x]
            if score > best:
                best, best_y = score, y
        scores.append(best + e)
        back.append(best_y)
    return scores, back


def weights(scores, column, beta):
    """By what candidates of a column compare: where moving is free, every turn
    stands for itself, and sums over many turns could round to a tie."""
    return list(column.emission) if beta == 0 else scores


def first_best(values, positions):
    best = positions[0]
    for i in positions:
        if values[i] > values[best]:
            best = i
    return best


def check(columns):
    before = 0  # candidates of the last turn that has any
    for t, column in enumerate(columns):
        n, come = len(column.chunk_ids), predecessors(column)
        if n == 0:
            continue
        if len(column.emission) != n:
            raise invalid(f"turn {t} has {n} candidates but {len(column.emission)} emissions")
        if (before == 0) != (len(come) == 0):
            raise invalid(f"turn {t} lists {len(come)} predecessors of {before}")
        if any(not 0 <= y < before for y in come) or any(a >= b for a, b in zip(come, come[1:])):
            raise invalid(f"turn {t}: predecessors {come} are not ascending below {before}")
        if column.has_distance and len(column.distance) != len(come) * n:
            raise invalid(f"turn {t} has {len(column.distance)} distances, not {len(come)}x{n}")
        before = n


if __name__ == "__main__":
    serve("viterbi-python", "1.0.0", {"Decoder": Viterbi()}, description="decodes by a Viterbi to be read and compared with")
