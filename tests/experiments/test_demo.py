from tensormachines.experiments import demo


def test_every_method_on_a_small_task_and_the_figure(tmp_path, capsys):
    task = demo.tasks()[2]
    X, y = task.load()
    results = [demo.run(task, method, X, y) for method in demo.METHODS]
    assert [result.method for result in results] == demo.METHODS
    assert all(0 < result.error < 1 for result in results)
    assert [result.parameters for result in results[:3]] == [56, 11, 67]
    demo.print_table(results)
    assert "Tensor Machine" in capsys.readouterr().out
    demo.draw(results * 2, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_generated_targets_are_what_they_say():
    X, y = demo.sparse_target(10)
    assert y[3] == X[3, 0] ** 6 - 10 * X[3, 1] * X[3, 2] * X[3, 19]
    assert demo.dense_target(10)[0].shape == (10, 20)
